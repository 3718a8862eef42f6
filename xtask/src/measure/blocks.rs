//! Parts of a document that a command writes: what stands between two markers, each a line.

use anyhow::{Result, bail};

/// A document with blocks `<!-- measure: NAME -->` ... `<!-- end -->`; all else is left as it is.
pub(super) struct Document(String);

const END: &str = "<!-- end -->\n";

impl Document {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Replaces what stands in a block.
    ///
    /// # Errors
    /// That there is no such block, or that it has no end of its own.
    pub(super) fn set(&mut self, name: &str, content: &str) -> Result<()> {
        let begin = format!("<!-- measure: {name} -->\n");
        let Some(at) = self.0.find(&begin) else {
            bail!("the document has no line `{}`", begin.trim_end());
        };
        let start = at + begin.len();
        let rest = &self.0[start..];
        let next = rest.find("<!-- measure: ").unwrap_or(rest.len());
        let Some(length) = rest.find(END).filter(|&length| length < next) else {
            bail!("the block `{name}` has no line `{}`", END.trim_end());
        };
        self.0.replace_range(start..start + length, &format!("\n{}\n\n", content.trim_end()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a\n<!-- measure: one -->\nold\n<!-- end -->\nb\n<!-- measure: two -->\n\
        <!-- end -->\nc\n";

    #[test]
    fn only_the_named_block_changes_and_again_the_same_is_no_change() {
        let mut document = Document::new(TEXT.to_owned());
        document.set("two", "new\n").unwrap();
        let expected = "a\n<!-- measure: one -->\nold\n<!-- end -->\nb\n<!-- measure: two -->\n\n\
            new\n\n<!-- end -->\nc\n";
        assert_eq!(document.text(), expected);
        document.set("two", "new").unwrap();
        assert_eq!(document.text(), expected);
    }

    #[test]
    fn a_missing_block_and_one_without_an_end_are_named() {
        let mut document = Document::new(TEXT.replacen("<!-- end -->\n", "", 1));
        let error = document.set("one", "new").unwrap_err().to_string();
        assert!(error.contains("`one` has no line"), "{error}");
        let error = document.set("three", "new").unwrap_err().to_string();
        assert!(error.contains("<!-- measure: three -->"), "{error}");
    }
}
