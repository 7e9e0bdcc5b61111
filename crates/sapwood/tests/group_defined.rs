//! Operations that a program defines, between members over real sockets and shared memory.

use sapwood::{Error, Group, GroupFailure, RankSet, Reason, Reduction, TreeKind};

use crate::group::{all, group, leave};

fn divisor(one: i64, other: i64) -> i64 {
    if other == 0 { one.abs() } else { divisor(other, one % other) }
}

/// One line after the other, each a slope and an offset.
fn follow(into: &mut [i64], value: &[i64]) {
    *into.last_mut().unwrap() += into[0] * value[1];
    into[0] *= value[0];
}

/// What each member's definition gives, which is the same at all.
fn define(members: &[Group], define: impl Fn(&Group) -> sapwood::Result<Reduction>) -> Reduction {
    let defined: Vec<Reduction> = members.iter().map(|member| define(member).unwrap()).collect();
    assert!(defined.iter().all(|reduction| *reduction == defined[0]));
    defined[0]
}

#[test]
fn a_function_folds_short_and_long_values_by_every_tree() {
    let members = group(5);
    let divisors = define(&members, |member| member.define("divisor", divisor));
    for tree in TreeKind::ALL {
        for count in [1, 60_000] {
            let own = |name: u32| -> Vec<i64> {
                (1..=count)
                    .map(|at| at * (12_i64 << name) * if name == 3 { 5 } else { 1 })
                    .collect()
            };
            let right: Vec<i64> = (1..=count).map(|at| at * 12).collect();
            let answers = all(&members, |name, member| {
                member.allreduce(divisors, &own(name)).tree(tree).start()
            });
            for answer in answers {
                let answer = answer.unwrap();
                assert!(answer.numbers::<i64>().unwrap() == right, "{tree}, {count}");
                assert_eq!(
                    (answer.contributors.to_string().as_str(), answer.missing),
                    ("0-4", vec![])
                );
            }
        }
    }
    let answers =
        all(&members, |name, member| member.reduce(2, divisors, &[12_i64 << name]).start());
    assert_eq!(answers[2].as_ref().unwrap().numbers::<i64>().unwrap(), [12]);
    leave(members);
}

#[test]
fn a_function_in_order_folds_whole_values_by_their_virtual_nodes() {
    let members = group(4);
    let line = define(&members, |member| member.define_in_order("line", follow));
    let own = |name: u32| [i64::from(name) + 2, 10 - i64::from(name)];
    let mut right = own(0);
    (1..4).for_each(|name| follow(&mut right, &own(name)));
    for tree in TreeKind::ALL {
        let answers = all(&members, |name, member| {
            member.allreduce(line, &own(name)).root(1).tree(tree).start()
        });
        for answer in answers {
            assert_eq!(answer.unwrap().numbers::<i64>().unwrap(), right, "{tree}");
        }
    }
    leave(members);
}

#[test]
fn a_function_that_panics_ends_the_call_at_all_and_the_group_goes_on() {
    let members = group(4);
    let careful = |one: i64, other: i64| {
        assert!(one != 13 && other != 13, "13 is refused");
        one + other
    };
    let careful = define(&members, |member| member.define("careful", careful));
    let line = define(&members, |member| {
        member.define_in_order("line", |into: &mut [i64], value: &[i64]| into[0] += value[5])
    });
    for (reduction, value) in [(careful, 13_i64), (line, 1)] {
        let answers = all(&members, |_, member| member.allreduce(reduction, &[value]).start());
        // It may have failed at several members, each of which says so.
        for answer in answers {
            let answer = answer.unwrap();
            assert_eq!((answer.missing.len(), answer.missing[0].1), (1, Reason::FunctionFailed));
            let error = answer.bytes().unwrap_err().to_string();
            assert!(error.contains("the function of the operation has failed"), "{error}");
        }
        for answer in all(&members, |_, member| member.allreduce(careful, &[2_i64]).start()) {
            assert_eq!(answer.unwrap().numbers::<i64>().unwrap(), [8]);
        }
    }
    leave(members);
}

#[test]
fn a_member_that_has_not_defined_what_it_calls_is_named_at_all() {
    let members = group(4);
    for lacking in [0, 2] {
        let name = format!("divisor {lacking}");
        let mut defined = None;
        for (at, member) in members.iter().enumerate() {
            if at != lacking {
                defined = Some(member.define(&name, divisor).unwrap());
            }
        }
        let divisors = defined.unwrap();
        let answers = all(&members, |_, member| member.allreduce(divisors, &[6_i64]).start());
        let names: RankSet = lacking.to_string().parse().unwrap();
        let missing = [(names, Reason::Undefined)];
        for (at, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(answer) => assert_eq!(answer.missing, missing),
                Err(error) => {
                    assert_eq!(at, lacking);
                    assert!(error.to_string().contains("define it before the call"), "{error}");
                }
            }
        }
    }
    let again = members[1].define("divisor 0", divisor).unwrap_err();
    assert!(
        matches!(&again, Error::Group(GroupFailure::Defined { name }) if name == "divisor 0"),
        "{again}"
    );
    leave(members);
}
