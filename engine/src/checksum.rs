//! Damage detection. A checksum says that bytes changed by accident; it never says what they are.

/// CRC-32/ISO-HDLC of `salt ‖ bytes`.
pub fn crc(salt: &[u8], bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(salt);
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_crc_of_zlib() {
        assert_eq!(crc(b"", b"123456789"), 0xcbf4_3926);
        assert_eq!(crc(b"1234", b"56789"), 0xcbf4_3926);
    }
}
