use super::*;

fn resolved() -> Resolved {
    Layers::new().with_assignment("train.accumulate=4").unwrap().resolve().unwrap()
}

fn noon() -> Timestamp {
    "2026-11-29T18:15:00Z".parse().unwrap()
}

#[test]
fn a_new_run_has_its_configuration_its_name_and_what_was_set_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let run = RunDir::create_at(&home, "first try", &resolved(), noon()).unwrap();
    assert_eq!(run.id(), "20261129T181500Z-first-try");
    assert_eq!(run.config().unwrap(), resolved().config);
    let meta = run.meta().unwrap();
    assert_eq!((meta.name.as_str(), meta.created.as_str()), ("first try", "2026-11-29T18:15:00Z"));
    assert_eq!(meta.explicit["train.accumulate"], "4");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(run.path()).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700, "nobody else looks in");
    let names: Vec<_> = fs::read_dir(home.runs()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn a_second_run_of_the_same_second_gets_another_folder() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let ids: Vec<_> =
        (0..3).map(|_| RunDir::create_at(&home, "a", &resolved(), noon()).unwrap().id().to_owned()).collect();
    assert_eq!(ids, ["20261129T181500Z-a", "20261129T181500Z-a-2", "20261129T181500Z-a-3"]);
}

#[test]
fn odd_names_make_safe_folders_and_are_kept_as_they_are() {
    assert_eq!(safe_name("../../etc/passwd"), "etc-passwd");
    assert_eq!(safe_name("a b\n\u{1b}[31mc"), "a-b-31mc");
    assert_eq!(safe_name("日本"), "run");
    assert_eq!(safe_name(""), "run");
    assert_eq!(safe_name("lr=1e-3"), "lr=1e-3");
    assert!(safe_name(&"x".repeat(5000)).len() <= NAME_IN_FOLDER);
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    for name in ["../../x", "日本", &"long ".repeat(100)] {
        let run = RunDir::create_at(&home, name, &resolved(), noon()).unwrap();
        assert_eq!(run.path().parent().unwrap(), home.runs());
        assert_eq!(run.name(), name.trim());
    }
}

#[test]
fn a_folder_that_is_no_run_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(RunDir::open(folder.path()), Err(RunError::NotARun(_))));
}
