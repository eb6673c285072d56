//! Selects layers by their `include` and `exclude` rules about phase, level and stages.

use std::collections::HashSet;

use crate::message::Message;
use crate::net::NetOptions;
use crate::{Error, Result};

/// The net's state, with which rules are compared: phase TEST, a level and stages.
pub(crate) struct State<'a> {
    level: i64,
    stages: HashSet<&'a [u8]>,
}

impl<'a> State<'a> {
    /// Takes the level and the stages from the options. As in Caffe, adds the stages that the net
    /// lists.
    pub fn new(net: &'a Message, options: &'a NetOptions) -> Self {
        let mut stages: HashSet<&[u8]> = options.stages.iter().map(String::as_bytes).collect();
        if let Some(state) = net.message("state") {
            stages.extend(state.texts("stage"));
        }
        Self { level: options.level.into(), stages }
    }

    /// Returns whether a layer's rules include the layer in the net.
    pub fn includes(&self, layer: &Message) -> Result<bool> {
        let (mut include, mut exclude) = (layer.messages("include"), layer.messages("exclude"));
        if layer.has("include") && layer.has("exclude") {
            let name = layer.text("name").escape_ascii();
            return Err(Error::invalid(format_args!(
                "layer '{name}': it has both include and exclude rules"
            )));
        }
        match layer.has("include") {
            true => Ok(include.any(|rule| self.meets(rule))),
            false => Ok(!exclude.any(|rule| self.meets(rule))),
        }
    }

    fn meets(&self, rule: &Message) -> bool {
        let in_stage = |stage: &[u8]| self.stages.contains(stage);
        (!rule.has("phase") || rule.enumeration("phase") == "TEST")
            && rule.given_int("min_level").is_none_or(|level| self.level >= level)
            && rule.given_int("max_level").is_none_or(|level| self.level <= level)
            && rule.texts("stage").into_iter().all(in_stage)
            && !rule.texts("not_stage").into_iter().any(in_stage)
    }
}

#[cfg(test)]
mod tests {
    use super::State;
    use crate::testing::message;
    use crate::NetOptions;

    const RULES: &[(&str, bool)] = &[
        ("", true),
        ("include { phase: TEST }", true),
        ("include { phase: TRAIN }", false),
        ("exclude { phase: TEST }", false),
        ("exclude { phase: TRAIN }", true),
        ("include { }", true),
        ("exclude { }", false),
        ("include { phase: TRAIN } include { phase: TEST }", true),
        ("include { min_level: 2 }", true),
        ("include { min_level: 3 }", false),
        ("include { max_level: 2 }", true),
        ("include { max_level: 1 }", false),
        ("include { stage: 'a' stage: 'own' }", true),
        ("include { stage: 'a' stage: 'other' }", false),
        ("include { not_stage: 'other' }", true),
        ("include { not_stage: 'own' }", false),
        ("include { phase: TRAIN stage: 'a' }", false),
        ("exclude { phase: TEST stage: 'other' }", true),
        ("exclude { stage: 'other' } exclude { stage: 'a' }", false),
    ];

    #[test]
    fn rules_include_and_exclude_layers() {
        let net = message("NetParameter", "state { phase: TRAIN level: 7 stage: 'own' }");
        let options = NetOptions { level: 2, stages: vec!["a".into()], ..NetOptions::default() };
        let state = State::new(&net, &options);
        for (rules, included) in RULES {
            let layer = message("LayerParameter", rules);
            assert_eq!(state.includes(&layer).unwrap(), *included, "{rules}");
        }
        let both = message("LayerParameter", "name: 'x' include { } exclude { }");
        let error = state.includes(&both).unwrap_err().to_string();
        assert_eq!(error, "layer 'x': it has both include and exclude rules");
    }
}
