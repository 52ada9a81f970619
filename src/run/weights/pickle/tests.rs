use super::*;
use crate::run::weights::element::Element;

/// `_rebuild_tensor_v2(storage of `elements` f32, offset, (2, 2), strides)` in protocol 2.
fn tensor(elements: u8, offset: u8, strides: [u8; 2]) -> Vec<u8> {
    let mut bytes = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x007X\x03\0\0\0cpuK".to_vec();
    bytes.extend([elements, b't', b'Q', b'K', offset, b'K', 2, b'K', 2, 0x86]);
    bytes.extend([b'K', strides[0], b'K', strides[1], 0x86, 0x89]);
    bytes.extend(b"ccollections\nOrderedDict\n)RtR.");
    bytes
}

fn refused(bytes: &[u8]) -> Refusal {
    Pickle::read(bytes).unwrap_err()
}

fn words(bytes: &[u8]) -> String {
    match refused(bytes) {
        Refusal::Damaged(problem) => problem,
        Refusal::Program(name) => panic!("refused as a program: {name}"),
    }
}

#[test]
fn a_tensor_is_a_view_of_a_storage() {
    let pickle = Pickle::read(&tensor(8, 2, [3, 1])).unwrap();
    let Node::Tensor(view) = pickle.root() else { panic!("{pickle:?}") };
    assert_eq!((view.offset, &view.shape[..], &view.strides[..]), (2, &[2, 2][..], &[3, 1][..]));
    assert_eq!((view.storage.key.as_str(), view.storage.elements), ("7", 8));
    assert_eq!(view.storage.element, Element::F32);
}

#[test]
fn a_view_beyond_its_storage_is_refused() {
    // The last element is offset + 3 + 1.
    assert!(Pickle::read(&tensor(7, 2, [3, 1])).is_ok());
    assert!(words(&tensor(6, 2, [3, 1])).contains("beyond the 6 elements"));
    assert!(words(&tensor(7, 3, [3, 1])).contains("beyond the 7 elements"));
    assert!(words(&tensor(7, 2, [200, 1])).contains("beyond"));
}

#[test]
fn nothing_is_called_but_what_describes_tensors() {
    for (bytes, name) in [
        (&b"\x80\x02cposix\nsystem\nX\x02\0\0\0ls\x85R."[..], "posix.system"),
        (b"\x80\x02cbuiltins\neval\n.", "builtins.eval"),
        (b"\x80\x02ctorch\nload\n.", "torch.load"),
        (b"\x80\x02ctorch._utils\n_rebuild_tensor\n.", "torch._utils._rebuild_tensor"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "os.system"),
    ] {
        assert_eq!(refused(bytes), Refusal::Program(name.to_owned()));
    }
    // A text is no function, an ordered dictionary takes nothing, and only dictionaries and tensors have a state.
    assert!(words(b"\x80\x02X\x01\0\0\0a)R.").contains("calls something"));
    assert!(words(b"\x80\x02ccollections\nOrderedDict\n]\x85R.").contains("calls something"));
    assert!(words(b"\x80\x02K\x01}b.").contains("state of something"));
}

#[test]
fn a_damaged_pickle_is_refused_and_never_followed() {
    for (bytes, part) in [
        (&b""[..], "ends too early"),
        (b"\x80\x02}", "ends too early"),
        (b"X\xff\xff\xff\x7fabc.", "ends too early"),
        (b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffabc.", "ends too early"),
        (b"\x8b\xff\xff\xff\x7f\x01.", "ends too early"),
        (b"ccollections", "ends too early"),
        (b".", "takes more"),
        (b"K\x01(0.", "takes more"),
        (b"t.", "did not begin"),
        (b"h\x05.", "remembers"),
        (b"K\x01K\x02K\x03s.", "no dictionary"),
        (b"}(K\x01u.", "no dictionary"),
        (b"K\x01Q.", "names a storage"),
        (b"\x80\x02I1\n.", "opcode 0x49 at byte 2"),
    ] {
        assert!(words(bytes).contains(part), "{part}: {}", words(bytes));
    }
    // Every prefix of a good pickle ends, and ends with a refusal.
    let good = tensor(8, 2, [3, 1]);
    for length in 0..good.len() {
        refused(&good[..length]);
    }
}

#[test]
fn a_value_that_holds_itself_is_no_trouble() {
    let pickle = Pickle::read(b"\x80\x02}q\x00X\x01\0\0\0ah\x00s.").unwrap();
    let Node::Dict(entries) = pickle.root() else { panic!("{pickle:?}") };
    assert_eq!(pickle.node(entries[0].1), pickle.root());
}

#[test]
fn whole_numbers_have_a_sign() {
    let value = |bytes: &[u8]| match Pickle::read(bytes).unwrap().root() {
        Node::Int(value) => *value,
        other => panic!("{other:?}"),
    };
    assert_eq!(value(b"J\xff\xff\xff\xff."), -1);
    assert_eq!(value(b"\x8a\x01\xff."), -1);
    assert_eq!(value(b"\x8a\x02\xff\0."), 255);
    assert_eq!(value(b"\x8a\0."), 0);
    assert_eq!(value(b"M\x01\x02."), 513);
}
