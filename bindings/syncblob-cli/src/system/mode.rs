//! Computes the permissions of a new file. No user gains permissions that the old file denied.

/// The version that an access list begins with. Entries follow, each with a tag, rights and a
/// number.
const VERSION: [u8; 4] = 2_u32.to_le_bytes();
const ENTRY: usize = 8;
const OWNER: u16 = 1;

/// Returns the mode of a new file that could not get the old file's group. The new group and others
/// get only the permissions that the old file granted both to its group and to others.
pub fn without_group(mode: u32) -> u32 {
    let both = mode >> 3 & mode & 0o7;
    mode & 0o700 | both << 3 | both
}

/// Returns the mode of a new file that could not get the old file's access list. All users but the
/// owner get only the permissions that every entry grants, because the list may have denied any of
/// them the rest. In the old file's `mode`, the group bits are the list's mask.
pub fn without_list(mode: u32, list: &[u8]) -> u32 {
    let Some(entries) = list.strip_prefix(&VERSION) else { return mode & 0o700 };
    let entries = entries.chunks_exact(ENTRY).map(|entry| {
        let [tag, rights] = [0, 2].map(|at| u16::from_le_bytes([entry[at], entry[at + 1]]));
        (tag, u32::from(rights))
    });
    let all = entries.filter(|(tag, _)| *tag != OWNER).fold(0o7, |all, (_, rights)| all & rights);
    mode & 0o700 | all << 3 | all
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: u16 = 0x02;
    const GROUP_OBJ: u16 = 0x04;
    const MASK: u16 = 0x10;
    const OTHER: u16 = 0x20;

    fn list(entries: &[(u16, u16)]) -> Vec<u8> {
        let mut list = VERSION.to_vec();
        for (tag, rights) in entries {
            list.extend([tag.to_le_bytes(), rights.to_le_bytes()].concat());
            list.extend(1002_u32.to_le_bytes());
        }
        list
    }

    #[test]
    fn without_a_list_all_have_what_every_entry_allows() {
        for (rights, mode, expected) in [
            ([6, 6, 0, 6, 0], 0o660, 0o600), // the group does not have the mask's rights
            ([6, 0, 4, 4, 4], 0o644, 0o600), // one user may not read
            ([7, 7, 7, 0, 5], 0o705, 0o700),
            ([7, 7, 5, 7, 5], 0o775, 0o755),
        ] {
            let tags = [OWNER, USER, GROUP_OBJ, MASK, OTHER];
            let entries: Vec<_> = tags.into_iter().zip(rights).collect();
            assert_eq!(without_list(mode, &list(&entries)), expected, "{rights:?}");
        }
    }

    #[test]
    fn an_unknown_list_grants_access_only_to_the_owner() {
        assert_eq!(without_list(0o664, b"\x03\0\0\0"), 0o600);
        assert_eq!(without_list(0o664, b""), 0o600);
    }

    #[test]
    fn without_the_group_all_have_what_group_and_others_had() {
        assert_eq!(without_group(0o640), 0o600);
        assert_eq!(without_group(0o604), 0o600);
        assert_eq!(without_group(0o765), 0o744);
    }
}
