//! Draws histograms as inline SVG.

use maud::{html, Markup};

use crate::summary::BINS;
use crate::text::grouped;

const BAR: usize = 4;
const HEIGHT: usize = 36;

/// Draws a visible bar for each bin that has values. All bars are one path.
pub fn histogram(bins: &[usize; BINS], [min, max]: [String; 2]) -> Markup {
    let most = bins.iter().copied().max().unwrap_or(0);
    let bar = |(index, &count): (usize, &usize)| {
        let height = (count as f64 / most.max(1) as f64 * HEIGHT as f64).max(1.0);
        format!("M{} {HEIGHT}v-{height:.1}h{BAR}v{height:.1}z", index * BAR)
    };
    let there = bins.iter().enumerate().filter(|(_, &count)| count > 0);
    let path: String = there.map(bar).collect();
    let label = format!("{BINS} bins from {min} to {max}, with at most {} values", grouped(most));
    html! {
        svg role="img" width=(BINS * BAR) height=(HEIGHT) viewBox={ "0 0 " (BINS * BAR) " " (HEIGHT) } {
            title { (label) }
            path d=(path) {}
        }
    }
}
