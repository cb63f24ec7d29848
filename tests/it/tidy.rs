//! House rules that no lint knows, over every source file of the repository.

use std::fs;
use std::path::{Path, PathBuf};

const FILE_LINES: usize = 500;
const LINE_CHARS: usize = 110;
/// The files of the simulator that may speak to it; everything else goes through tokio's names.
const WORLD: [&str; 9] = [
    "world.rs",
    "world/people.rs",
    "world/supervision.rs",
    "field.rs",
    "field/boundary.rs",
    "wire.rs",
    "deskhost.rs",
    "outside.rs",
    "reroll.rs",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in the workspace").to_owned()
}

/// Every Rust file of the repository, with its path from the root and its text.
fn sources() -> Vec<(String, String)> {
    let mut found = vec![];
    for package in ["destinations", "workflow", "sim", "scenarios", "tests"] {
        collect(&root().join(package), &mut found);
    }
    assert!(found.len() > 100, "{} files", found.len());
    found
}

fn collect(folder: &Path, found: &mut Vec<(String, String)>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, found);
            }
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let name =
                path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
            found.push((name, fs::read_to_string(&path).expect("UTF-8")));
        }
    }
}

/// The lines of code: without comments, and without what stands in quotes.
fn code(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")).map(|(n, line)| {
        let outside = line.split('"').step_by(2).collect::<Vec<_>>().join("\"");
        (n + 1, outside)
    })
}

/// Every place at which a rule is broken.
fn broken(rule: impl Fn(&str, &str) -> Vec<String>) -> Vec<String> {
    sources().iter().flat_map(|(name, text)| rule(name, text)).collect()
}

fn lines_with(name: &str, text: &str, what: impl Fn(&str) -> bool) -> Vec<String> {
    code(text)
        .filter(|(_, line)| what(line))
        .map(|(n, line)| format!("{name}:{n}: {}", line.trim()))
        .collect()
}

const NONE: [String; 0] = [];

#[test]
fn files_and_lines_are_short() {
    let long_files = broken(|name, text| {
        let lines = text.lines().count();
        if lines > FILE_LINES { vec![format!("{name}: {lines} lines")] } else { vec![] }
    });
    assert_eq!(long_files, NONE);
    let long_lines = broken(|name, text| {
        let long = outside_quotes(text).filter(|line| line.chars().count() > LINE_CHARS);
        long.map(|line| format!("{name}: {line}")).collect()
    });
    assert_eq!(long_lines, NONE);
}

/// Every line but those with text in quotes, which is broken where its reader wants it.
fn outside_quotes(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.lines().filter(move |line| {
        if !quoted && line.trim_start().starts_with("//") {
            return true;
        }
        let began_quoted = quoted;
        let quotes = line.replace("\\\\", "").replace("\\\"", "").replace("'\"'", "").matches('"').count();
        quoted ^= quotes % 2 == 1;
        !began_quoted && quotes == 0
    })
}

#[test]
fn every_module_says_what_it_is() {
    let silent = broken(|name, text| {
        // Tests in a file of their own are explained by the module that they belong to.
        let is_said = text.starts_with("//! ") || name.ends_with("/tests.rs");
        if is_said { vec![] } else { vec![name.to_owned()] }
    });
    assert_eq!(silent, NONE);
}

/// The simulator's own names are known to the world alone: the rest runs on tokio's, in both builds.
#[test]
fn only_the_world_speaks_to_the_simulator() {
    let elsewhere = broken(|name, text| {
        let file = name.strip_prefix("sim/src/");
        if file.is_some_and(|file| WORLD.contains(&file)) {
            return vec![];
        }
        lines_with(name, text, |line| line.contains("madsim::"))
    });
    assert_eq!(elsewhere, NONE);
}

#[test]
fn unsafe_code_is_in_one_file() {
    let elsewhere = broken(|name, text| {
        if name == "sim/src/vfs.rs" {
            return vec![];
        }
        lines_with(name, text, |line| {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.into_iter().any(|word| word == "unsafe")
        })
    });
    assert_eq!(elsewhere, NONE);
    let roots = [
        "destinations/src/lib.rs",
        "workflow/src/lib.rs",
        "scenarios/src/lib.rs",
        "scenarios/src/main.rs",
        "tests/lib.rs",
        "tests/it/main.rs",
    ];
    let sources = sources();
    let text = |wanted: &str| {
        let found = sources.iter().find(|(name, _)| name == wanted);
        &found.unwrap_or_else(|| panic!("{wanted} is not there")).1
    };
    for root in roots {
        assert!(text(root).contains("#![forbid(unsafe_code)]"), "{root}");
    }
    assert!(text("sim/src/lib.rs").contains("#![deny(unsafe_code)]"), "one file may lift it");
}

/// Their order differs from process to process, and with it a history.
#[test]
fn nothing_iterates_in_an_order_of_chance() {
    let hashed = |line: &str| ["HashMap", "HashSet"].iter().any(|name| line.contains(name));
    // The canary that must be noticed for it does so on purpose.
    let elsewhere = broken(|name, text| match name {
        "sim/src/canary.rs" | "sim/src/cli/canaries.rs" => vec![],
        _ => lines_with(name, text, hashed),
    });
    assert_eq!(elsewhere, NONE);
}

#[test]
fn every_select_is_biased() {
    let unbiased = broken(|name, text| {
        // There, what an unbiased one does is the question.
        if name == "tests/it/traps.rs" {
            return vec![];
        }
        let lines: Vec<(usize, String)> = code(text).collect();
        let selects = lines.windows(2).filter(|pair| pair[0].1.contains("select! {"));
        selects
            .filter(|pair| pair[1].1.trim() != "biased;")
            .map(|pair| format!("{name}:{}", pair[0].0))
            .collect()
    });
    assert_eq!(unbiased, NONE);
}

#[test]
fn lints_are_expected_with_a_reason_and_never_allowed() {
    let allowed = broken(|name, text| lines_with(name, text, |line| line.contains("#[allow(")));
    assert_eq!(allowed, NONE);
}
