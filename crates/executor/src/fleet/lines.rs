//! Splits a stream of bytes into lines.

/// What arrived of a stream and is not a whole line yet.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    bytes_read: Vec<u8>,
    /// Up to here there is no end of a line.
    searched: usize,
}

impl Lines {
    /// Takes in what was read.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.bytes_read.extend_from_slice(bytes);
    }

    /// Takes all whole lines out, without their ends. O(bytes).
    pub(crate) fn take(&mut self) -> Vec<Vec<u8>> {
        let Some(end) = self.bytes_read[self.searched..].iter().rposition(|&byte| byte == b'\n') else {
            self.searched = self.bytes_read.len();
            return Vec::new();
        };
        let rest = self.bytes_read.split_off(self.searched + end + 1);
        let mut whole = std::mem::replace(&mut self.bytes_read, rest);
        self.searched = self.bytes_read.len();
        whole.pop();
        whole.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
    }

    /// How long the line is that is not whole, bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes_read.len()
    }

    /// The beginning of it.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes_read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_however_they_came_in() {
        let text = b"one\n\ntwo three\nfour";
        for size in 1..=text.len() {
            let (mut lines, mut all) = (Lines::default(), Vec::new());
            for piece in text.chunks(size) {
                lines.add(piece);
                all.extend(lines.take());
            }
            assert_eq!(all, [b"one".to_vec(), Vec::new(), b"two three".to_vec()], "{size}");
            assert_eq!((lines.len(), lines.rest()), (4, b"four".as_slice()));
            lines.add(b"\n");
            assert_eq!(lines.take(), [b"four".to_vec()]);
        }
    }
}
