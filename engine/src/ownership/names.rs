//! Which names, ids and media types a caller may give. It knows nothing of who gives them.

use unicode_normalization::UnicodeNormalization;

use crate::{
    error::{Error, Kind, Result},
    limits::{MEDIA_TYPE_LEN_MAX, NAME_LEN_MAX, SCOPE_ID_LEN_MAX, TAG_KEY_LEN_MAX},
};

/// The artifact name as it is kept: NFC, so that one name has one spelling. Refused is what would be a path, a control sequence of
/// a terminal, or a name that reads as another one than it is.
pub fn artifact_name(text: &str) -> Result<String> {
    let bad = |what| Err(Error::new(Kind::BadName, what));
    let mut name = String::new();
    for c in text.nfc() {
        if c == '/' || c.is_control() || is_bidi_control(c) {
            return bad("a name has no `/`, NUL, control or bidi characters");
        }
        if name.len() + c.len_utf8() > NAME_LEN_MAX {
            return bad("a name has at most 255 bytes");
        }
        name.push(c);
    }
    match name.as_str() {
        "" => bad("a name is not empty"),
        "." | ".." => bad("a name is not `.` or `..`"),
        _ => Ok(name),
    }
}

/// Marks, embeddings, overrides and isolates: they change in which order the other characters are shown.
const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Checks an id that a caller gives: account, op id.
pub fn caller_id(text: &str) -> Result<()> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._:@-".contains(&b);
    if (1..=SCOPE_ID_LEN_MAX).contains(&text.len()) && text.bytes().all(allowed) {
        Ok(())
    } else {
        Err(Error::new(Kind::InvalidArgument, "an id is 1 to 128 bytes of A-Z, a-z, 0-9 and ._:@-"))
    }
}

/// Checks the key of a tag: an address, a name, whatever a third party goes by.
pub fn tag_key(text: &str) -> Result<()> {
    if (1..=TAG_KEY_LEN_MAX).contains(&text.len()) && !text.chars().any(char::is_control) {
        Ok(())
    } else {
        Err(Error::new(Kind::InvalidArgument, "the key of a tag is 1 to 255 bytes without control characters"))
    }
}

/// The media type as it is kept, its essence in lower case; `None` if it is not well formed: `type/subtype` as RFC 6838 section
/// 4.2 names them, and parameters as RFC 9110 section 5.6.6 writes them.
pub fn media_type(text: &str) -> Option<String> {
    let text = text.trim_matches([' ', '\t']);
    let (essence, parameters) = text.split_at(text.find(';').unwrap_or(text.len()));
    let (kind, subtype) = essence.trim_end_matches([' ', '\t']).split_once('/')?;
    if text.len() > MEDIA_TYPE_LEN_MAX || !is_type_name(kind) || !is_type_name(subtype) || !are_parameters(parameters) {
        return None;
    }
    Some(format!("{}/{}{parameters}", kind.to_ascii_lowercase(), subtype.to_ascii_lowercase()))
}

/// Type and subtype of a media type that is well formed.
pub fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim_end_matches([' ', '\t'])
}

fn is_type_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b);
    (1..=127).contains(&text.len()) && text.as_bytes()[0].is_ascii_alphanumeric() && text.bytes().all(allowed)
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// `; name=value` any number of times.
fn are_parameters(mut rest: &str) -> bool {
    let blank = [' ', '\t'];
    while !rest.is_empty() {
        let Some(parameter) = rest.trim_start_matches(blank).strip_prefix(';') else { return false };
        let Some((name, value)) = parameter.trim_start_matches(blank).split_once('=') else { return false };
        if !is_token(name) {
            return false;
        }
        let end = if let Some(quoted) = value.strip_prefix('"') {
            quoted_len(quoted).map(|len| len + 1)
        } else {
            let end = value.find([';', ' ', '\t']).unwrap_or(value.len());
            is_token(&value[..end]).then_some(end)
        };
        let Some(end) = end else { return false };
        rest = &value[end..];
    }
    true
}

/// Length of a quoted string with its closing quote, behind the opening one.
fn quoted_len(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (index, b) in text.bytes().enumerate() {
        match b {
            b'"' if !escaped => return Some(index + 1),
            b'\\' if !escaped => escaped = true,
            b'\t' | b' '..=b'~' => escaped = false,
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_name_has_one_spelling() {
        assert_eq!(artifact_name("e\u{301}.txt").expect("good"), "é.txt");
        for name in [".hidden", " a ", "a\\b", "…", "日本語.pdf", "a\u{200d}b"] {
            assert_eq!(artifact_name(name).expect("good"), name);
        }
    }

    #[test]
    fn a_name_that_is_a_path_or_reads_as_another_is_refused() {
        let bidi = ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}').chain(['\u{200e}', '\u{200f}', '\u{61c}']);
        let bad = ["", ".", "..", "a/b", "a\0", "a\n", "\u{1b}[31m", "\u{7f}", "\u{85}"].map(String::from);
        for name in bad.into_iter().chain(bidi.map(|c| format!("a{c}b"))) {
            assert_eq!(artifact_name(&name).expect_err(&name).kind(), Kind::BadName);
        }
    }

    #[test]
    fn a_name_has_255_bytes_after_normalisation() {
        assert!(artifact_name(&"a".repeat(255)).is_ok());
        assert!(artifact_name(&"a".repeat(256)).is_err());
        // Three bytes of two characters become two of one.
        assert!(artifact_name(&"e\u{301}".repeat(127)).is_ok());
        assert!(artifact_name(&"e\u{301}".repeat(128)).is_err());
    }

    #[test]
    fn an_id_of_a_caller_has_few_characters() {
        for id in ["a", "user@example.org", "A-1_2:3.4", &"x".repeat(128)] {
            assert!(caller_id(id).is_ok(), "{id}");
        }
        for id in ["", "a b", "ä", "a/b", "a\0", &"x".repeat(129)] {
            assert_eq!(caller_id(id).expect_err(id).kind(), Kind::InvalidArgument);
        }
    }

    #[test]
    fn a_tag_key_is_short_and_has_no_control_characters() {
        for key in ["a+b@example.org", "Ann Example", "é", &"x".repeat(255)] {
            assert!(tag_key(key).is_ok(), "{key}");
        }
        for key in ["", "a\n", "\u{0}", &"x".repeat(256)] {
            assert_eq!(tag_key(key).expect_err(key).kind(), Kind::InvalidArgument);
        }
    }

    #[test]
    fn a_media_type_keeps_its_parameters_and_loses_its_upper_case() {
        for (given, kept) in [
            ("text/plain", "text/plain"),
            (" Text/PLAIN ; charset=UTF-8", "text/plain; charset=UTF-8"),
            ("text/x; a=\"b;\\\"c\"; d=e", "text/x; a=\"b;\\\"c\"; d=e"),
            ("application/vnd.a+json", "application/vnd.a+json"),
        ] {
            assert_eq!(media_type(given).as_deref(), Some(kept));
        }
        assert_eq!(essence("text/plain; charset=UTF-8"), "text/plain");
    }

    #[test]
    fn what_is_not_a_media_type_is_refused() {
        let long = format!("text/plain; a={}", "b".repeat(255));
        for text in [
            "",
            "text",
            "/",
            "text/",
            "/plain",
            "text/a b",
            "text/plain;",
            "text/plain; a",
            "text/plain; a=",
            "text/plain; a=\"b",
            "text/plain; a=\"b\"c",
            "text/plän",
            "text/plain\n",
            "text/a/b",
            "-a/b",
            &long,
        ] {
            assert_eq!(media_type(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_is_kept_as_it_is_the_next_time(text in "\\PC{0,80}") {
            if let Ok(name) = artifact_name(&text) {
                prop_assert!(name.len() <= NAME_LEN_MAX);
                prop_assert_eq!(artifact_name(&name).expect("normal"), name);
            }
            if let Some(kept) = media_type(&text) {
                prop_assert_eq!(media_type(&kept), Some(kept));
            }
        }
    }
}
