//! Reads the format of Java's `LZ4BlockOutputStream`: blocks with Java's headers, as in the event logs of
//! Spark.
//!
//! A block has a magic word, a byte with its method and the largest block size, and, least byte first, its
//! length packed and unpacked and a checksum. A block of unpacked length 0 ends a stream; another stream may
//! follow, and the end may be missing while the writer still runs.

use std::io::{self, BufRead, Read};

use twox_hash::XxHash32;

use super::damaged;

/// The magic word of each block.
pub(super) const MAGIC: [u8; 8] = *b"LZ4Block";

/// A header without its magic word.
const HEADER: usize = 13;

/// Methods: stored as it is, and packed.
const RAW: u8 = 0x10;
const PACKED: u8 = 0x20;

/// The seed of check sums, of which four bits are not used.
const SEED: u32 = 0x9747_b28c;
const SUM: u32 = 0x0fff_ffff;

/// Reads the content of all blocks.
pub(super) struct Blocks<R> {
    source: R,
    block: Vec<u8>,
    read: usize,
}

impl<R: BufRead> Blocks<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, block: Vec::new(), read: 0 }
    }

    /// Goes to the next block with content; returns false at the end of the file.
    fn next_block(&mut self) -> io::Result<bool> {
        self.block.clear();
        self.read = 0;
        while self.block.is_empty() {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            let mut header = [0; MAGIC.len() + HEADER];
            self.source.read_exact(&mut header)?;
            let (magic, header) = header.split_at(MAGIC.len());
            if magic != MAGIC {
                return Err(damaged("a block without its magic number"));
            }
            let number = |at: usize| {
                let bytes = header[at..at + 4].iter().rev();
                bytes.fold(0u32, |number, &byte| number << 8 | u32::from(byte))
            };
            self.unpack(header[0], [number(1), number(5), number(9)])?;
        }
        Ok(true)
    }

    fn unpack(&mut self, token: u8, [packed, unpacked, sum]: [u32; 3]) -> io::Result<()> {
        let most = 1u32 << (10 + (token & 0x0f));
        if packed > most || unpacked > most {
            return Err(damaged("a block above the allowed length"));
        }
        let mut content = vec![0; packed as usize];
        self.source.read_exact(&mut content)?;
        self.block = match token & 0xf0 {
            _ if unpacked == 0 => return Ok(()),
            RAW if packed == unpacked => content,
            PACKED => lz4_flex::block::decompress(&content, unpacked as usize)
                .map_err(|_| damaged("a block that cannot be unpacked"))?,
            _ => return Err(damaged("a block with an unknown method")),
        };
        if self.block.len() != unpacked as usize || XxHash32::oneshot(SEED, &self.block) & SUM != sum {
            return Err(damaged("a block with a wrong checksum"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Blocks<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.read == self.block.len() && !self.next_block()? {
            return Ok(0);
        }
        let read = (self.block.len() - self.read).min(out.len());
        out[..read].copy_from_slice(&self.block[self.read..self.read + read]);
        self.read += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block as Java writes it, with blocks of up to 64 KiB.
    fn block(content: &[u8], is_packed: bool) -> Vec<u8> {
        let packed = if is_packed { lz4_flex::block::compress(content) } else { content.to_vec() };
        let mut block = MAGIC.to_vec();
        block.push(6 | if is_packed { PACKED } else { RAW });
        let sum = if content.is_empty() { 0 } else { XxHash32::oneshot(SEED, content) & SUM };
        for number in [packed.len() as u32, content.len() as u32, sum] {
            block.extend(number.to_le_bytes());
        }
        block.extend(packed);
        block
    }

    fn read(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        Blocks::new(bytes).read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn blocks_of_all_streams_are_read() {
        let words = "word and word and word and word\n".repeat(50);
        let mut file = [block(words.as_bytes(), true), block(b"raw", false), block(b"", false)].concat();
        assert!(file.len() < 400);
        assert_eq!(read(&file).unwrap(), format!("{words}raw"));
        file.extend(block(b"more", false));
        assert_eq!(read(&file).unwrap(), format!("{words}rawmore"), "without the block that ends it");
    }

    #[test]
    fn damage_is_reported() {
        let whole = block("word word word word word".as_bytes(), true);
        assert!(read(&whole[..whole.len() - 1]).is_err());
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0x21;
            assert!(read(&other).is_err(), "byte {at}");
        }
    }
}
