//! Cuts a stream of JSON into values without building them: what is wanted is kept as text, the rest is passed over.
//! Checks brackets and strings only; whoever parses the kept text checks the rest.

use std::io::BufRead;

use super::Error;

/// No event of any tool is as long.
const LONGEST: usize = 16 << 20;

pub(super) struct Cutter<R> {
    source: R,
    kept: Vec<u8>,
}

impl<R: BufRead> Cutter<R> {
    pub(super) fn new(source: R) -> Cutter<R> {
        Cutter { source, kept: Vec::new() }
    }

    /// The next byte that is neither blank nor a comma, without taking it.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, Error> {
        loop {
            let chunk = self.source.fill_buf()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let skipped = chunk.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',')).count();
            let found = chunk.get(skipped).copied();
            self.source.consume(skipped);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Takes the byte that `peek` gave.
    pub(super) fn take(&mut self) {
        self.source.consume(1);
    }

    /// Takes the value that begins here. Its text if it is kept; `None` if the stream ends before it does.
    pub(super) fn value(&mut self, keep: bool) -> Result<Option<&[u8]>, Error> {
        self.kept.clear();
        let (mut depth, mut in_string, mut escaped) = (0u64, false, false);
        let mut begun = false;
        loop {
            let chunk = self.source.fill_buf()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let mut end = None;
            for (index, byte) in chunk.iter().enumerate() {
                if in_string {
                    match byte {
                        _ if escaped => escaped = false,
                        b'\\' => escaped = true,
                        b'"' => {
                            in_string = false;
                            if depth == 0 {
                                end = Some(index + 1);
                                break;
                            }
                        }
                        _ => {}
                    }
                    continue;
                }
                match byte {
                    b'"' => in_string = true,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' if depth > 1 => depth -= 1,
                    b'}' | b']' if depth == 1 => {
                        end = Some(index + 1);
                        break;
                    }
                    // A number or word ends where something else begins.
                    b'}' | b']' | b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' if depth == 0 && begun => {
                        end = Some(index);
                        break;
                    }
                    _ => {}
                }
                begun = true;
            }
            let used = end.unwrap_or(chunk.len());
            if keep {
                if self.kept.len() + used > LONGEST {
                    return Err(Error::TooLong);
                }
                self.kept.extend_from_slice(&chunk[..used]);
            }
            self.source.consume(used);
            if end.is_some() {
                return Ok(Some(&self.kept));
            }
        }
    }
}
