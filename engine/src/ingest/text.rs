//! Texts: short, UTF-8, of a media type for text. What is checked here is checked before anything is stored.

use std::io::Read;

use crate::{
    error::{Error, Kind, Result},
    limits::TEXT_LEN_MAX,
    ownership::names,
};

/// Media types that a text may have; the first is that of a text whose caller names none.
pub const MEDIA_TYPES: [&str; 4] = ["text/plain", "text/markdown", "text/csv", "application/json"];

/// A text that may be put.
pub struct Text {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its media type, with the parameters that the caller gave.
    pub media_type: String,
}

impl Text {
    /// Reads a text. `TOO_LARGE`: more than 1 MiB. `BAD_UTF8`: not UTF-8. `BAD_TYPE`: a media type that is none of a text.
    pub fn read(claimed: Option<&str>, source: &mut dyn Read) -> Result<Self> {
        let media_type = claimed.map_or_else(|| Some(MEDIA_TYPES[0].to_owned()), names::media_type);
        let media_type = media_type.filter(|is| MEDIA_TYPES.contains(&names::essence(is))).ok_or_else(|| {
            Error::new(Kind::BadType, format!("a text has one of the media types {}", MEDIA_TYPES.join(", ")))
        })?;
        let mut bytes = Vec::new();
        let failed = |error| Error::outside(error, "read the source");
        source.take(TEXT_LEN_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() > TEXT_LEN_MAX {
            return Err(Error::new(Kind::TooLarge, format!("a text has at most {TEXT_LEN_MAX} bytes")));
        }
        match std::str::from_utf8(&bytes) {
            Ok(_) => Ok(Self { bytes, media_type }),
            Err(error) => {
                let at = error.valid_up_to();
                Err(Error::new(Kind::BadUtf8, format!("the text is not UTF-8 from its byte {at} on")))
            }
        }
    }
}
