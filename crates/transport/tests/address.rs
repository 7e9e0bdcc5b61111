//! Any text is an address that prints as it reads, or an error that names it.

use proptest::prelude::*;
use sapwood_transport::Address;

proptest! {
    #[test]
    fn any_text_is_read_or_refused(
        scheme in prop_oneof![Just(""), Just("unix:"), Just("unix:@"), Just("unix:/"), Just("tcp:")],
        rest in "\\PC{0,40}|[a-z0-9.:%\\[\\]]{0,20}|[a-z]{1,9}:[0-9]{1,6}",
    ) {
        let text = format!("{scheme}{rest}");
        match text.parse::<Address>() {
            Ok(address) => {
                let printed = address.to_string();
                prop_assert_eq!(printed.parse::<Address>().unwrap(), address);
            }
            Err(error) => {
                let named = format!("{text:?}");
                prop_assert!(error.to_string().contains(&named));
            }
        }
    }
}
