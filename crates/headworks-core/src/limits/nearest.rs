//! Guesses which word somebody meant.

/// Longer words are not guessed at: no known word comes near them.
const MAX_GUESSED: usize = 32;

/// The word among `known` that `text` most likely stands for, if any is near.
pub(super) fn nearest<'k>(text: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if text.len() > MAX_GUESSED {
        return None;
    }
    let text = text.to_lowercase().replace('-', "_");
    let near =
        |word: &&str| distance(&text, word) <= (word.len() / 2).min(2) || letters(&text) == letters(word);
    known.into_iter().filter(near).min_by_key(|word| distance(&text, word))
}

/// The same for words that differ only by letters swapped.
fn letters(word: &str) -> Vec<char> {
    let mut letters: Vec<char> = word.chars().collect();
    letters.sort_unstable();
    letters
}

/// How many letters must be put in, taken out or changed to make `a` of `b` (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_word_with_letters_wrong_or_swapped() {
        assert_eq!(nearest("maxBuckets", ["max_buckets", "match"]), Some("max_buckets"));
        assert_eq!(nearest("fro", ["policy", "for"]), Some("for"));
        assert_eq!(nearest("raet", ["rate", "name"]), Some("rate"));
    }

    #[test]
    fn guesses_nothing_when_nothing_is_near() {
        assert_eq!(nearest("requests_per_unit", ["rate", "name"]), None);
        assert_eq!(nearest("xy", ["per", "rate"]), None);
        assert_eq!(nearest(&"r".repeat(1000), ["rate"]), None);
    }
}
