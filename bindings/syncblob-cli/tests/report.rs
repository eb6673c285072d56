//! Tests `syncblob report`.

mod browser;
mod program;

use std::fs;
use std::path::{Path, PathBuf};

use base64::prelude::{Engine, BASE64_STANDARD};
use browser::Browser;
use program::{command, field, number, real_files, run, Files};
use syncblob::{Blob, Format, Model, Payload};

fn report(files: &Files, file: &Path) -> PathBuf {
    let output = files.path("report.html");
    let options = ["--force", "-o", output.to_str().unwrap()];
    assert_eq!(run(command("report", &options, &[file])), (0, String::new(), String::new()));
    output
}

const HOSTILE: &str =
    "</title></style><script>document.title = 'owned'</script><img src=x onerror=alert(1)>\"'&\u{202e}";

fn hostile(files: &Files) -> PathBuf {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    model.set_name(HOSTILE).unwrap();
    model.add_layer(HOSTILE, "Input").unwrap();
    let conv = model.add_layer("conv1", "Convolution").unwrap();
    let filters = Blob::<f32>::from_fn([4, 3, 5, 5], |i| (i as f32).sin()).unwrap();
    model.add_blob(conv, &filters, Payload::Data).unwrap();
    model.add_blob(conv, &Blob::<f32>::full([4], f32::NAN).unwrap(), Payload::Data).unwrap();
    let empty = model.add_layer("empty", HOSTILE).unwrap();
    model.add_blob(empty, &Blob::<f32>::zeros([0, 3]).unwrap(), Payload::Data).unwrap();
    let name = if cfg!(windows) { "net.caffemodel" } else { "<b>net<b>.caffemodel" };
    model.save(files.path(name)).unwrap();
    files.path(name)
}

#[test]
fn the_page_needs_no_other_file_and_shows_names_as_text() {
    let files = Files::new();
    let page = fs::read_to_string(report(&files, &hostile(&files))).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert_eq!(page.matches("<script").count(), 1, "the page has one script");
    for absent in ["<img src=x", "<b>net", "http:", "https:", "\u{202e}", "<link"] {
        assert!(!page.contains(absent), "{absent}");
    }
    assert!(page.contains("&lt;script&gt;") && page.contains("default-src 'none'"));
    assert_eq!(page.matches("<title>").count(), 1 + 1, "titles of the page and a histogram");
}

#[test]
fn a_net_with_connections_is_drawn() {
    let files = Files::new();
    let page = fs::read_to_string(report(&files, &files.carrying_net("net.caffemodel", 3, 2)));
    let page = page.unwrap();
    for part in [
        "<h2>Net</h2>",
        "data <tspan class=\"what\">input</tspan> 1x3</text>",
        "fc <tspan class=\"what\">InnerProduct</tspan> 1x2</text>",
        "<path class=\"edges\" d=\"M7 11V22M7 22L7 33\">",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    let page = fs::read_to_string(report(&files, &hostile(&files))).unwrap();
    assert!(!page.contains("<h2>Net</h2>"), "it has no connections");
}

fn chain(files: &Files, layers: u64) -> PathBuf {
    let texts = |pairs: &[(u64, &[u8])]| -> Vec<u8> {
        pairs.iter().flat_map(|&(number, text)| field(number, text)).collect()
    };
    let mut bytes = texts(&[(3, b"0"), (8, &number(1, 1))]);
    for index in 0..layers {
        let (bottom, top) = (index.to_string(), (index + 1).to_string());
        let name = HOSTILE.as_bytes();
        let pairs = [(1, name), (2, b"ReLU"), (3, bottom.as_bytes()), (4, top.as_bytes())];
        bytes.extend(field(100, &texts(&pairs)));
    }
    files.write("chain.caffemodel", &bytes)
}

#[test]
fn only_the_first_layers_of_a_large_net_are_drawn() {
    let files = Files::new();
    let page = fs::read_to_string(report(&files, &chain(&files, 2_000))).unwrap();
    assert!(page.contains("The first 600 of 2,001 inputs and layers"));
    assert_eq!(page.matches("<text ").count(), 600);
    assert!(!page.contains("<img src=x") && !page.contains('\u{202e}'));
}

#[test]
fn failures_leave_the_old_file() {
    let files = Files::new();
    let output = files.write("report.html", b"old");
    let to = ["-o", output.to_str().unwrap()];
    let force = [&to[..], &["--force"]].concat();
    let net = hostile(&files);
    let cases: [(&[&str], &Path, i32, &str); 4] = [
        (&to, &net, 1, "--force"),
        (&force, &files.short(), 1, "syncblob verify"),
        (&force, &files.path("missing"), 1, "check the path"),
        (&[], &net, 2, "--output"),
    ];
    for (options, file, wanted, part) in cases {
        let (status, _, err) = run(command("report", options, &[file]));
        assert_eq!((status, fs::read(&output).unwrap()), (wanted, b"old".to_vec()), "{err}");
        assert!(err.contains(part), "{part} is not in {err}");
    }
    let left: Vec<_> = fs::read_dir(output.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_no_file() {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::{thread, time::Duration};
    let files = Files::new();
    let mut model = Model::create(Format::Caffemodel).unwrap();
    let layer = model.add_layer("many", "T").unwrap();
    let blob = Blob::<f32>::full([1], 0.5).unwrap();
    for _ in 0..100_000 {
        model.add_blob(layer, &blob, Payload::Data).unwrap();
    }
    model.save(files.path("net")).unwrap();
    let names = || {
        let entries = fs::read_dir(files.path("")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let (net, output) = (files.path("net"), files.path("report.html"));
    let options = ["-o", output.to_str().unwrap()];
    let mut program = Command::new(env!("CARGO_BIN_EXE_syncblob"));
    let mut child = program.args(command("report", &options, &[&net])).spawn().unwrap();
    while names().len() < 2 {
        assert!(child.try_wait().unwrap().is_none(), "the command ended before its signal");
        thread::sleep(Duration::from_millis(1));
    }
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    assert_eq!(names(), ["net"]);
}

/// Returns how many rows and pictures the page has.
fn look(browser: &mut Browser, page: &Path) -> (u64, u64) {
    browser.open(page);
    assert_eq!(browser.complaints(), [] as [String; 0]);
    let not_data: Vec<_> =
        browser.requests().into_iter().filter(|url| !url.starts_with("data:image/png")).collect();
    assert_eq!(not_data.len(), 1, "{not_data:?}");
    let decoded = "Promise.all([...document.images].map(image => image.decode()))
        .then(() => [...document.images].every(image => image.naturalWidth > 0))";
    assert_eq!(browser.evaluate(decoded), true);
    // The page's policy contains the style's hash. A wrong hash would disable the style.
    assert_eq!(browser.evaluate("getComputedStyle(document.body).maxWidth"), "1440px");
    let count = |browser: &mut Browser, what: &str| {
        browser.evaluate(&format!("document.querySelectorAll('{what}').length")).as_u64().unwrap()
    };
    (count(browser, "tbody tr"), count(browser, "figure img"))
}

#[test]
fn a_browser_shows_the_page() {
    let Some(mut browser) = Browser::start() else { return };
    let files = Files::new();
    let page = report(&files, &hostile(&files));
    assert_eq!(look(&mut browser, &page), (4, 1));
    assert_eq!(browser.evaluate("document.title"), "<b>net<b>.caffemodel – syncblob");
    let name = browser.evaluate("document.querySelector('tbody th').textContent");
    assert_eq!(name, HOSTILE.replace('\u{202e}', "\\u{202e}"));
    assert_eq!(browser.evaluate("document.querySelectorAll('td.alarm').length"), 1);
    assert_eq!(browser.evaluate("document.querySelectorAll('svg path').length"), 1);
    assert_eq!(browser.evaluate("document.scripts.length"), 1);

    let ground = "getComputedStyle(document.body).backgroundColor";
    let screenshots = std::env::var_os("SYNCBLOB_SCREENSHOTS").map(PathBuf::from);
    browser.prefer("light");
    assert_eq!(browser.evaluate(ground), "rgb(255, 255, 255)");
    browser.prefer("dark");
    assert_eq!(browser.evaluate(ground), "rgb(20, 24, 31)");
    browser.resize(400, 800);
    if let Some(folder) = screenshots {
        let png = BASE64_STANDARD.decode(browser.screenshot()).unwrap();
        fs::write(folder.join("narrow.png"), png).unwrap();
    }
    let overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.evaluate(overflow), 0);
}

#[test]
fn a_browser_draws_a_net() {
    let Some(mut browser) = Browser::start() else { return };
    let files = Files::new();
    let page = report(&files, &chain(&files, 3));
    assert_eq!(look(&mut browser, &page), (3, 0));
    let widths = "[...document.querySelectorAll('.net text, .net path')]
        .filter(element => element.getBBox().height > 5).length";
    assert_eq!(browser.evaluate(widths), 4 + 2);
    let colour = "getComputedStyle(document.querySelector('.net .edges')).fill";
    assert_eq!(browser.evaluate(colour), "none");
}

fn shown(browser: &mut Browser) -> String {
    let names = "[...document.querySelectorAll('tbody tr')].filter(row => row.checkVisibility())
        .map(row => row.cells[0].textContent.replace(/^<.*/, 'hostile')).join(' ')";
    browser.evaluate(names).as_str().unwrap().to_owned()
}

fn focused(browser: &mut Browser) -> String {
    let element = "document.activeElement.tagName + ' ' + document.activeElement.textContent";
    browser.evaluate(element).as_str().unwrap().to_owned()
}

fn search_and_sort(browser: &mut Browser) {
    browser.press("Tab");
    assert_eq!(focused(browser), "INPUT ");
    for (typed, names, found) in [
        ("CONV1", "conv1.0 conv1.1", "2 of 4"),
        (" 4x3", "conv1.0", "1 of 4"),
        (" nothing", "", "0 of 4"),
    ] {
        browser.type_text(typed);
        assert_eq!(shown(browser), names);
        assert_eq!(browser.evaluate("document.querySelector('output').textContent"), found);
    }
    browser.evaluate("document.querySelector('input').select()");
    browser.type_text("o");
    assert_eq!(shown(browser), "hostile conv1.0 conv1.1 empty.0", "layers' types are searched");
    for heading in ["Tensor", "Layer's type", "Shape", "Dtype", "Count"] {
        browser.press("Tab");
        assert_eq!(focused(browser), format!("BUTTON {heading}"));
    }
    for (state, names) in [
        ("ascending", "empty.0 conv1.1 conv1.0 hostile"),
        ("descending", "conv1.0 conv1.1 empty.0 hostile"),
        ("none", "hostile conv1.0 conv1.1 empty.0"),
        ("ascending", "empty.0 conv1.1 conv1.0 hostile"),
    ] {
        browser.press("Enter");
        assert_eq!(shown(browser), names);
        let sorted = "[...document.querySelectorAll('[aria-sort]')]
            .map(heading => heading.textContent + heading.getAttribute('aria-sort')).join()";
        let wanted = if state == "none" { String::new() } else { format!("Count{state}") };
        assert_eq!(browser.evaluate(sorted), wanted);
    }
    browser.press("Tab");
    browser.press("Enter");
    assert_eq!(shown(browser), "conv1.0 hostile conv1.1 empty.0", "empty cells are last");
    assert_eq!(browser.complaints(), [] as [String; 0]);
    assert_eq!(browser.requests().len(), 2, "the page and the picture in it");
}

#[test]
fn a_browser_searches_and_sorts_the_table() {
    let Some(mut browser) = Browser::start() else { return };
    let files = Files::new();
    let page = report(&files, &hostile(&files));
    for (width, height) in [(1280, 900), (390, 844)] {
        browser.resize(width, height);
        browser.open(&page);
        search_and_sort(&mut browser);
        let fits = "[...document.querySelectorAll('input, output')].every(element => {
            const place = element.getBoundingClientRect();
            return place.left >= 0 && place.right <= innerWidth && place.height > 0;
        }) && [...document.querySelectorAll('button')].every(element =>
            element.getBoundingClientRect().height >= 24) &&
            document.documentElement.scrollWidth <= document.documentElement.clientWidth";
        assert_eq!(browser.evaluate(fits), true, "{width}");
        if let Some(folder) = std::env::var_os("SYNCBLOB_SCREENSHOTS") {
            let png = BASE64_STANDARD.decode(browser.screenshot()).unwrap();
            fs::write(Path::new(&folder).join(format!("sorted-{width}.png")), png).unwrap();
        }
    }
}

#[test]
fn a_browser_shows_the_pages_of_real_files() {
    let Some(mut browser) = Browser::start() else { return };
    let files = Files::new();
    let screenshots = std::env::var_os("SYNCBLOB_SCREENSHOTS").map(PathBuf::from);
    for file in real_files() {
        let model = Model::open(&file).unwrap();
        let rows: usize = model.layers().map(|layer| layer.num_blobs().max(1)).sum();
        let rows = (rows + model.blobs().len()) as u64;
        let page = report(&files, &file);
        assert_eq!(look(&mut browser, &page).0, rows);
        let Some(folder) = &screenshots else { continue };
        for colours in ["light", "dark"] {
            browser.prefer(colours);
            browser.resize(1280, 1600);
            let name = file.file_name().unwrap().to_string_lossy();
            let png = BASE64_STANDARD.decode(browser.screenshot()).unwrap();
            fs::write(folder.join(format!("{name}-{colours}.png")), png).unwrap();
        }
    }
}

#[test]
fn a_browser_reports_errors_of_a_wrong_page() {
    let Some(mut browser) = Browser::start() else { return };
    let files = Files::new();
    let page = fs::read_to_string(report(&files, &hostile(&files))).unwrap();
    let wrong = [
        ("</body>", "<script>1</script></body>"),
        ("</body>", "<img src='picture.png'></body>"),
        ("<style>", "<style> "),
        ("<script>", "<script> "),
    ];
    for (from, to) in wrong {
        browser.open(&files.write("wrong.html", page.replace(from, to).as_bytes()));
        assert!(!browser.complaints().is_empty(), "{to}");
    }
}
