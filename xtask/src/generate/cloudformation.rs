//! The controller's IAM policies inside the CloudFormation template.
//!
//! The documents of `deploy/aws/iam` are the only ones that are written by hand. Terraform reads them as they are; a
//! template has to carry them with it, so each block of text that names such a document in its first line is filled from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const TEMPLATE: &str = "deploy/aws/cloudformation.yaml";

/// What opens a block; the path of the document, from the template's folder, stands behind it.
const OPENING: &str = "PolicyDocument: !Sub | # ";

/// What the documents leave open, and what stands for it in the template.
const PARAMETERS: &[(&str, &str)] = &[
    ("${Partition}", "${AWS::Partition}"),
    ("${Region}", "${AWS::Region}"),
    ("${AccountId}", "${AWS::AccountId}"),
    ("${NodeRoleArn}", "${KarpenterNodeRole.Arn}"),
    ("${QueueArn}", "${KarpenterInterruptionQueue.Arn}"),
];

pub fn files(root: &Path) -> Result<BTreeMap<PathBuf, String>> {
    let folder = root.join(TEMPLATE).parent().unwrap_or(root).to_owned();
    let read = |path: &Path| std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let template = read(&root.join(TEMPLATE))?;
    let filled = fill(&template, |document| read(&folder.join(document)))?;
    Ok(BTreeMap::from([(PathBuf::from(TEMPLATE), filled)]))
}

fn fill(template: &str, read: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut filled = String::new();
    let mut lines = template.lines().peekable();
    while let Some(line) = lines.next() {
        filled.push_str(line);
        filled.push('\n');
        let Some(document) = line.trim_start().strip_prefix(OPENING) else {
            continue;
        };
        let indent = indentation(line);
        while lines.next_if(|next| indentation(next) > indent).is_some() {}
        let text = PARAMETERS
            .iter()
            .fold(read(document)?, |text, (open, given)| text.replace(open, given));
        for line in text.lines() {
            filled.push_str(&format!("{:1$}{line}\n", "", indent + 2));
        }
    }
    Ok(filled)
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_filled_from_the_document_that_it_names() {
        let template = "\
a:
  PolicyDocument: !Sub | # iam/a.json
    stale
      and more
b: 1
";
        let filled = fill(template, |document| {
            assert_eq!(document, "iam/a.json");
            Ok("{\n  \"x\": \"${Region}\"\n}\n".to_owned())
        })
        .expect("the document can be read");
        let expected = "\
a:
  PolicyDocument: !Sub | # iam/a.json
    {
      \"x\": \"${AWS::Region}\"
    }
b: 1
";
        assert_eq!(filled, expected);
        assert_eq!(
            fill(&filled, |_| Ok("{\n  \"x\": \"${Region}\"\n}\n".to_owned())).unwrap(),
            expected
        );
    }
}
