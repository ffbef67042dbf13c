//! File formats that are recognised by their first bytes and refused by name, so that they are never read as
//! text.

/// Bytes that are checked.
pub(super) const HEAD: usize = 512;
/// The content that a reader expects after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Text, for the built-in programs.
    Text,
    /// Lines of any bytes, for mappers.
    Lines,
    /// Any bytes, for records of a fixed length.
    Bytes,
}

/// Refused formats: their first bytes, and their names. A `?` stands for any byte.
pub(super) const REFUSED: [(&[u8], &str); 61] = [
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "a zip archive"),
    (b"PK\x07\x08", "a zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"),
    (b"!<arch>\n", "an ar archive"),
    (b"!<thin>\n", "an ar archive"),
    (b"\xc7\x71", "a cpio archive"),
    (b"\x71\xc7", "a cpio archive"),
    (b"MSCF\0\0\0\0", "a cabinet archive"),
    (b"xar!\0", "a xar archive"),
    (b"\xed\xab\xee\xdb", "an RPM package"),
    (b"\x89LZO\x00\r\n\x1a\n", "lzo"),
    (b"LZIP\x01", "lzip"),
    (b"LRZI\0", "lrzip"),
    (b"\xff\x06\x00\x00sNaPpY", "snappy"),
    (b"\x1f\x9d", "compress (.Z)"),
    (b"\x1f\x1e", "pack (.z)"),
    (b"\x1f\xa0", "compress (.Z)"),
    (b"\x02\x21\x4c\x18", "lz4 of the old format"),
    (b"\x37\xa4\x30\xec", "a dictionary of zstd"),
    (b"\x5d\x00\x00\x80\x00\xff\xff\xff\xff\xff\xff\xff\xff", "lzma"),
    (b"Obj\x01", "an Avro file"),
    (b"SEQ\x04", "a Hadoop SequenceFile"),
    (b"SEQ\x05", "a Hadoop SequenceFile"),
    (b"SEQ\x06", "a Hadoop SequenceFile"),
    (b"RCF\x01", "a Hadoop RCFile"),
    (b"ARROW1\0", "an Arrow file"),
    (b"\xff\xff\xff\xff??\0\0", "an Arrow stream"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"CDF\x01", "a netCDF file"),
    (b"CDF\x02", "a netCDF file"),
    (b"CDF\x05", "a netCDF file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"\x80\x05\x95", "a Python pickle"),
    (b"\xac\xed\0\x05", "serialized Java objects"),
    (b"\xca\xfe\xba\xbe", "a Java class file"),
    (b"\x7fELF", "an ELF program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"\xce\xfa\xed\xfe", "a Mach-O program"),
    (b"MZ\x90\0", "a Windows program"),
    (b"\0asm", "a WebAssembly module"),
    (b"%PDF-", "a PDF file"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Microsoft Office file"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"RIFF????WEBP", "a WebP image"),
    (b"RIFF????WAVE", "a WAVE recording"),
    (b"OggS\0", "an Ogg recording"),
    (b"fLaC\0", "a FLAC recording"),
    (b"\0\0??ftyp", "an MP4 file"),
    (b"\xa1\xb2\xc3\xd4", "a capture of packets"),
    (b"\xd4\xc3\xb2\xa1", "a capture of packets"),
];

/// A shorter magic number may begin a record of bytes by chance, bytes.
pub(super) const SURE: usize = 4;

/// The position of the letters in a tar header.
pub(super) const TAR_AT: usize = 257;
/// The position of its checksum, in octal digits.
pub(super) const TAR_SUM: std::ops::Range<usize> = 148..156;

/// Whether bytes begin with a magic number, in which a `?` stands for any byte.
pub(super) fn begins(head: &[u8], magic: &[u8]) -> bool {
    head.len() >= magic.len()
        && magic.iter().zip(head).all(|(expected, found)| matches!(expected, b'?') || expected == found)
}

/// The name of a refused format, if the first bytes of a file or of its content show one.
pub(super) fn refused_head(head: &[u8], content: Content) -> Option<&'static str> {
    if is_tar(head) {
        return Some("a tar archive");
    }
    if is_cpio(head) {
        return Some("a cpio archive");
    }
    let is_sure = |magic: &[u8]| content != Content::Bytes || magic.len() >= SURE;
    let known = REFUSED.iter().find(|(magic, _)| is_sure(magic) && begins(head, magic));
    known.map(|(_, name)| *name).or_else(|| match content {
        Content::Bytes => None,
        Content::Lines => wide_text(head, content).or_else(|| is_mostly_zeros(head).then_some("binary data")),
        Content::Text => wide_text(head, content).or_else(|| is_binary(head).then_some("binary data")),
    })
}

/// Whether a header of a tar archive comes first: by its letters, or in the oldest format by its checksum.
pub(super) fn is_tar(head: &[u8]) -> bool {
    let Some(header) = head.first_chunk::<HEAD>() else {
        return head.get(TAR_AT..).is_some_and(|rest| rest.starts_with(b"ustar"));
    };
    let sum = std::str::from_utf8(&header[TAR_SUM]).unwrap_or_default();
    let sum = u64::from_str_radix(sum.trim_matches([' ', '\0']), 8).ok();
    // The sum of the header with spaces in place of the sum.
    let bytes =
        |range: std::ops::Range<usize>| header[range].iter().map(|&byte| u64::from(byte)).sum::<u64>();
    let found = bytes(0..TAR_SUM.start) + 8 * u64::from(b' ') + bytes(TAR_SUM.end..HEAD);
    header[TAR_AT..].starts_with(b"ustar") || header[0] != 0 && sum == Some(found)
}

/// Whether a header of a cpio archive of digits comes first.
pub(super) fn is_cpio(head: &[u8]) -> bool {
    let are_digits = |length: usize, is_digit: fn(&u8) -> bool| {
        head.get(6..length).is_some_and(|digits| digits.iter().all(is_digit))
    };
    (head.starts_with(b"070701") || head.starts_with(b"070702")) && are_digits(110, u8::is_ascii_hexdigit)
        || head.starts_with(b"070707") && are_digits(76, |digit| matches!(digit, b'0'..=b'7'))
}

/// Text of two or four bytes per character, with or without a mark.
pub(super) fn wide_text(head: &[u8], content: Content) -> Option<&'static str> {
    if head.iter().all(|byte| *byte == 0) {
        return None;
    }
    let is_wide = |low_first: bool| {
        // A character of UTF-32 is at most 0x10ffff.
        let (last, next) = if low_first { (3, 2) } else { (0, 1) };
        let is_character = |unit: &[u8]| unit[last] == 0 && unit[next] <= 0x10;
        head.len() >= 8 && head.chunks_exact(4).all(is_character)
    };
    if begins(head, b"\xff\xfe\0\0") || begins(head, b"\0\0\xfe\xff") || is_wide(true) || is_wide(false) {
        return Some("text in UTF-32");
    }
    let is_marked = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    // Every space and newline of such a text contains a zero; a mapper may read bytes that happen to begin
    // with the mark.
    let is_utf16 = is_marked && (content == Content::Text || head.contains(&0))
        || is_utf16(head, true)
        || is_utf16(head, false);
    is_utf16.then_some("text in UTF-16")
}

/// Whether bytes may be UTF-16 without a mark: nearly all characters are below U+0100, or all newlines have
/// two bytes and few other bytes are zero.
pub(super) fn is_utf16(head: &[u8], low_first: bool) -> bool {
    let (mut narrow, mut newlines, mut others) = (0, 0, 0);
    for unit in head.chunks_exact(2) {
        let (low, high) = if low_first { (unit[0], unit[1]) } else { (unit[1], unit[0]) };
        if high == b'\n' || low == b'\n' && high != 0 {
            return false;
        }
        narrow += usize::from(high == 0);
        newlines += usize::from(low == b'\n');
        others += usize::from(low == 0);
    }
    let units = head.len() / 2;
    let is_whole = head.len().is_multiple_of(2);
    is_whole && narrow >= 2 && others * 8 <= units && (newlines > 0 || narrow * 4 >= units * 3)
}

/// Whether most of a block are zeros, as in programs, images of disks and files with holes.
pub(super) fn is_mostly_zeros(head: &[u8]) -> bool {
    let zeros = memchr::memchr_iter(0, head).count();
    head.len() >= 64 && zeros * 5 > head.len() * 2
}

/// Whether bytes are certainly not text: one is zero, or many are control characters and the rest is not
/// UTF-8.
pub(super) fn is_binary(head: &[u8]) -> bool {
    let controls = head.iter().filter(|byte| matches!(byte, 4..=6 | 14..=26)).count();
    let is_utf8 = || match std::str::from_utf8(head) {
        Ok(_) => true,
        // The end of the block may cut a character.
        Err(error) => error.error_len().is_none(),
    };
    head.contains(&0) || controls * 50 > head.len() && !is_utf8()
}
