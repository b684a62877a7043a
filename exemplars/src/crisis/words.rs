//! Messages become words: links, symbols and words that say nothing are taken away.

/// English words that are in every message and tell nothing.
const STOP_WORDS: &str = " a about after all also am an and any are as at be because been before being but by can could did do \
does doing down each few for from further had has have having he her here hers him his how i if in into is it its just me more \
most my no nor not now of off on once only or other our ours out over own rt s same she should so some such t than that the \
their theirs them then there these they this those through to too under until up very was we were what when where which while \
who whom why will with would you your yours ";

/// The words of a message that may tell something, in small letters. A hashtag is its word; whom a message is for is not.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for piece in text.split_whitespace() {
        if piece.starts_with('@') || piece.contains("://") || piece.starts_with("www.") {
            continue;
        }
        for word in piece.split(|letter: char| !letter.is_alphanumeric()) {
            let word = word.to_lowercase();
            if word.len() > 1 && !STOP_WORDS.contains(&format!(" {word} ")) && word.chars().any(char::is_alphabetic) {
                found.push(word);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_symbols_names_and_stop_words_are_gone() {
        let text = "RT @redcross: The bridge in #Houston is DOWN!!! 3 people missing… https://t.co/Ab1 www.x.org";
        assert_eq!(words(text), ["bridge", "houston", "people", "missing"]);
        assert_eq!(words("🔥 — 42"), Vec::<String>::new());
    }
}
