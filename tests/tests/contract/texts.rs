//! Texts: what may be put as one, and that nothing is kept of what may not.

use holdfast::{Kind, Put, format::artifact::Origin, limits::TEXT_LEN_MAX};

use crate::bench::*;

fn put_text(bench: &Bench, put: &Put<'_>, bytes: &[u8]) -> holdfast::Result<holdfast::PutReply> {
    bench.store().put_text(put, &mut &*bytes)
}

#[test]
fn a20_a_text_is_at_most_a_mebibyte_of_utf8_of_a_type_for_text() {
    let bench = Bench::new();
    let before = bench.store().stats().expect("counts").live_bytes;
    let put = into_account("answer.md");
    let typed = |media_type| Put { media_type: Some(media_type), ..put };
    let largest = vec![b'a'; TEXT_LEN_MAX];
    for (bytes, kind_of) in [
        ([&largest[..], b"b"].concat(), Kind::TooLarge),
        (b"\xff".to_vec(), Kind::BadUtf8),
        ([&largest[2..], b"\xc3".as_slice()].concat(), Kind::BadUtf8),
        (b"\xed\xa0\x80".to_vec(), Kind::BadUtf8),
    ] {
        assert_eq!(kind(put_text(&bench, &put, &bytes)), kind_of);
    }
    for media_type in ["text/html", "image/png", "text", "", "text/plain/x", "application/octet-stream"] {
        assert_eq!(kind(put_text(&bench, &typed(media_type), b"a")), Kind::BadType, "{media_type}");
    }
    assert_eq!(bench.list(account("ann")), []);
    assert_eq!(bench.store().stats().expect("counts").live_bytes, before, "nothing is kept");

    for (media_type, kept) in [
        (None, "text/plain"),
        (Some("text/plain; charset=utf-8"), "text/plain; charset=utf-8"),
        (Some("Text/Markdown"), "text/markdown"),
        (Some("text/csv"), "text/csv"),
        (Some("application/json"), "application/json"),
    ] {
        let reply = put_text(&bench, &Put { media_type, ..put }, "grüße".as_bytes()).expect("puts");
        assert_eq!(reply.media_type, kept);
        assert_eq!(bench.read(account("ann"), reply.id).expect("reads"), "grüße".as_bytes());
    }
    assert_eq!(put_text(&bench, &put, &largest).expect("puts").size, 1 << 20);
    assert_eq!(put_text(&bench, &put, b"").expect("puts").size, 0);
    bench.verify();
}

#[test]
fn a22_and_c13_a_text_needs_no_file_and_keeps_the_origin_that_the_caller_gives() {
    let bench = Bench::new();
    let leased = bench.begin();
    let answer = Put { origin: Origin::ModelOutput, ..into_run(&leased.token, "answer.md") };
    let id = put_text(&bench, &answer, b"# An answer").expect("puts").id;
    assert_eq!(bench.stat(run(leased.run.run), id).origin, Origin::ModelOutput);
    bench.open("c");
    let pasted = Put { origin: Origin::Upload, op_id: Some("paste-1"), ..into_conversation("c", "pasted.txt") };
    let first = put_text(&bench, &pasted, b"a very large block").expect("puts");
    assert_eq!(bench.stat(conversation("c"), first.id).origin, Origin::Upload);
    let again = put_text(&bench, &pasted, b"a very large block").expect("answers");
    assert_eq!((again.id, again.replayed), (first.id, true));
    bench.verify();
}
