//! Random packets and messages for the property tests.

use std::num::NonZeroU32;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sapwood_packet::{Element, ElementType, Header, Order, RankSet, Shape, Values};
use sapwood_wire::{
    Cause, Claim, Control, FilterRequest, Policy, ProbeId, Ranges, RecoveryTerms, StreamRequest,
    WaitRule, run_waves_max,
};

/// Any header.
pub fn any_header() -> impl Strategy<Value = Header> {
    let numbers = (any::<u32>(), any::<i32>(), 0..u64::MAX, any::<u32>());
    let flags = any::<[bool; 4]>();
    (numbers, any_order(), flags).prop_map(|((stream, tag, wave, origin), order, flags)| {
        let [filtered, ends_wave, late, void] = flags;
        let is_last = order == Order::Last;
        let (wave, void) = if is_last { (0, true) } else { (wave, void) };
        Header { stream, tag, wave, origin, order, filtered, ends_wave, late, void }
    })
}

fn any_order() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Wave),
        any::<NonZeroU32>().prop_map(Order::Single),
        any::<NonZeroU32>().prop_map(Order::Part),
        Just(Order::Direct),
        Just(Order::Last),
    ]
}

/// Any header of a packet that has values.
pub fn any_header_of_values() -> impl Strategy<Value = Header> {
    any_header().prop_map(|header| match header.order {
        Order::Last => Header { void: false, order: Order::Wave, ..header },
        _ => Header { void: false, ..header },
    })
}

/// A set of some ranges, near each other or anywhere.
pub fn any_ranks() -> impl Strategy<Value = RankSet> {
    let range = prop_oneof![
        (0_u32..200, 0_u32..9).prop_map(|(first, more)| (first, first + more)),
        (any::<u32>(), any::<u32>()),
    ];
    vec(range, 0..12).prop_map(|ranges| {
        let mut set = RankSet::new();
        ranges.into_iter().for_each(|(first, last)| set.insert_range(first, last));
        set
    })
}

/// The elements of an array.
pub fn any_body() -> impl Strategy<Value = Vec<u16>> {
    vec(any::<u16>(), 0..300)
}

/// Values of any format.
pub fn any_values() -> impl Strategy<Value = Values> {
    let element = prop::sample::select(ElementType::ALL.to_vec());
    let shape = prop::sample::select(vec![Shape::Scalar, Shape::Array, Shape::LargeArray]);
    let strings = vec(vec(any::<u8>(), 0..20), 1..6);
    let value = (element, shape, vec(any::<u64>(), 1..10), any::<bool>(), strings);
    vec(value, 0..9).prop_map(|values| {
        values.into_iter().fold(
            Values::new(),
            |built, (element, shape, numbers, empty, strings)| {
                let count = if empty && shape != Shape::Scalar { 0 } else { usize::MAX };
                let numbers = &numbers[..count.min(numbers.len())];
                let strings = &strings[..count.min(strings.len())];
                with_value(built, element, shape, numbers, strings)
            },
        )
    })
}

/// Values of several waves that may be one run: of one numeric directive and one length.
pub fn any_run() -> impl Strategy<Value = Vec<Values>> {
    let numeric = ElementType::ALL.into_iter().filter(|element| element.is_numeric());
    let element = prop::sample::select(numeric.collect::<Vec<_>>());
    let shape = prop::sample::select(vec![Shape::Scalar, Shape::Array, Shape::LargeArray]);
    let count = prop_oneof![Just(0_usize), 1_usize..9, 1_usize..80];
    (element, shape, count, vec(any::<u64>(), 1..20), 0_u32..64).prop_map(
        |(element, shape, count, numbers, more)| {
            let count = if shape == Shape::Scalar { 1 } else { count };
            let wave = |first: usize| {
                let numbers = numbers.iter().copied().cycle().skip(first).take(count);
                let numbers: Vec<u64> = numbers.collect();
                with_value(Values::new(), element, shape, &numbers, &[])
            };
            let most = run_waves_max(wave(0).as_ref().body().len()).max(2);
            (0..(2 + more % (most - 1)) as usize).map(wave).collect()
        },
    )
}

fn with_value(
    values: Values,
    element: ElementType,
    shape: Shape,
    numbers: &[u64],
    strings: &[Vec<u8>],
) -> Values {
    match element {
        ElementType::Int8 => with_numbers(values, shape, numbers, |bits| bits as i8),
        ElementType::Uint8 => with_numbers(values, shape, numbers, |bits| bits as u8),
        ElementType::Int16 => with_numbers(values, shape, numbers, |bits| bits as i16),
        ElementType::Uint16 => with_numbers(values, shape, numbers, |bits| bits as u16),
        ElementType::Int32 => with_numbers(values, shape, numbers, |bits| bits as i32),
        ElementType::Uint32 => with_numbers(values, shape, numbers, |bits| bits as u32),
        ElementType::Int64 => with_numbers(values, shape, numbers, |bits| bits as i64),
        ElementType::Uint64 => with_numbers(values, shape, numbers, |bits| bits),
        ElementType::Float => {
            with_numbers(values, shape, numbers, |bits| f32::from_bits(bits as u32))
        }
        ElementType::Double => with_numbers(values, shape, numbers, f64::from_bits),
        ElementType::String => match shape {
            Shape::Scalar => values.string(&strings[0]),
            Shape::Array => values.strings(strings),
            Shape::LargeArray => values.large_strings(strings),
        },
    }
}

fn with_numbers<T: Element>(
    values: Values,
    shape: Shape,
    numbers: &[u64],
    of_bits: fn(u64) -> T,
) -> Values {
    let numbers: Vec<T> = numbers.iter().map(|bits| of_bits(*bits)).collect();
    match shape {
        Shape::Scalar => values.scalar(numbers[0]),
        Shape::Array => values.array(&numbers),
        Shape::LargeArray => values.large_array(&numbers),
    }
}

fn any_text() -> impl Strategy<Value = String> {
    "\\PC{0,40}"
}

fn any_ranges() -> impl Strategy<Value = Ranges> {
    any_ranks().prop_map(|set| Ranges::from(&set))
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

/// Any message, every variant as often as another.
pub fn any_control() -> impl Strategy<Value = Control> {
    prop_oneof![
        6 => any_upkeep(),
        5 => any_of_streams(),
        4 => any_probe(),
        7 => any_of_repairs(),
        2 => any_of_visits(),
    ]
}

fn any_claim() -> impl Strategy<Value = Claim> {
    prop_oneof![
        any::<u32>().prop_map(|rank| Claim::Started { rank }),
        option::of(any::<u32>()).prop_map(|rank| Claim::Attached { rank }),
        (any::<u32>(), vec(any::<u32>(), 0..5))
            .prop_map(|(rank, between)| Claim::Orphan { rank, between }),
        Just(Claim::Visitor),
        Just(Claim::Joining),
    ]
}

fn any_ancestors() -> impl Strategy<Value = Vec<(u32, String)>> {
    vec((any::<u32>(), any_text()), 0..4)
}

fn any_terms() -> impl Strategy<Value = RecoveryTerms> {
    (any::<bool>(), any::<[u32; 4]>()).prop_map(
        |(is_on, [orphan_limit, grace, silence, front_end_wait])| RecoveryTerms {
            is_on,
            orphan_limit,
            grace,
            silence,
            front_end_wait,
        },
    )
}

fn any_welcome() -> impl Strategy<Value = Control> {
    let parts = (any_bytes(), any_ancestors(), any_terms(), any::<bool>());
    (any::<[u32; 3]>(), parts).prop_map(
        |([parent, rank, back_ends], (plan, ancestors, terms, is_responsive))| Control::Welcome {
            parent,
            rank,
            back_ends,
            plan,
            ancestors,
            terms,
            is_responsive,
        },
    )
}

fn any_cause() -> impl Strategy<Value = Cause> {
    (0..13_u32, any::<u32>()).prop_map(|(code, detail)| Cause::of(code, detail))
}

fn any_upkeep() -> impl Strategy<Value = Control> {
    let places = vec((any::<u32>(), any_text(), any_ranges()), 0..4);
    prop_oneof![
        (any::<u16>(), any_claim(), any::<u32>(), option::of(any_text())).prop_map(
            |(version, claim, pid, address)| Control::Hello { version, claim, pid, address }
        ),
        any_welcome(),
        any_text().prop_map(|reason| Control::Refused { reason }),
        (any_ranges(), places)
            .prop_map(|(back_ends, attach_points)| Control::Reached { back_ends, attach_points }),
        (any::<u32>(), any_text()).prop_map(|(rank, text)| Control::Failed { rank, text }),
        (any::<u32>(), any_text()).prop_map(|(rank, text)| Control::Notice { rank, text }),
        (any::<u32>(), any_ranges(), any_text(), any_cause()).prop_map(
            |(rank, back_ends, reason, cause)| Control::Lost { rank, back_ends, reason, cause }
        ),
    ]
}

fn any_filters() -> impl Strategy<Value = Vec<FilterRequest>> {
    let filter = (any_text(), any_bytes(), any_bytes());
    vec(
        filter.prop_map(|(name, format, parameters)| FilterRequest { name, format, parameters }),
        0..3,
    )
}

fn any_request() -> impl Strategy<Value = StreamRequest> {
    let wait = prop_oneof![
        Just(WaitRule::All),
        any::<u32>().prop_map(|milliseconds| WaitRule::Timeout { milliseconds }),
        Just(WaitRule::Immediate),
    ];
    let policy = prop_oneof![Just(Policy::Block), Just(Policy::DropOldest)];
    let numbers = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u64>());
    let filters = (any_filters(), any_filters(), any_filters(), any::<bool>());
    (any_ranges(), filters, wait, policy, numbers).prop_map(
        |(members, filters, wait, policy, (stream, window_bytes, height, first_wave))| {
            let (up, down, mut rule, at_back_ends) = filters;
            let rule = rule.pop();
            StreamRequest {
                stream,
                members,
                up,
                down,
                wait,
                policy,
                window_bytes,
                height,
                first_wave,
                rule,
                at_back_ends,
            }
        },
    )
}

fn any_of_streams() -> impl Strategy<Value = Control> {
    let place = (any::<u32>(), option::of(any::<u64>()), any::<u32>());
    prop_oneof![
        any_request().prop_map(Control::Open),
        any::<u32>().prop_map(|stream| Control::Close { stream }),
        (place, any_ranges(), any_text(), any_cause()).prop_map(
            |((stream, wave, rank), back_ends, reason, cause)| {
                Control::Fault { stream, wave, rank, back_ends, reason, cause }
            }
        ),
        (any::<u32>(), any::<u32>()).prop_map(|(stream, bytes)| Control::Credit { stream, bytes }),
        (any::<u32>(), any::<[u64; 3]>()).prop_map(|(stream, [wave, offset, singles])| {
            Control::Acknowledge { stream, wave, offset, singles }
        }),
    ]
}

fn any_probe() -> impl Strategy<Value = Control> {
    let any_id = || {
        let heartbeat = any::<u64>().prop_map(ProbeId::Heartbeat);
        prop_oneof![heartbeat, any::<u64>().prop_map(ProbeId::Barrier)]
    };
    prop_oneof![
        Just(Control::Shutdown),
        Just(Control::Leaving),
        any_id().prop_map(|probe| Control::Probe { probe }),
        (option::of(any_id()), any::<u64>())
            .prop_map(|(probe, clock)| Control::Echo { probe, clock }),
    ]
}

fn any_of_repairs() -> impl Strategy<Value = Control> {
    let place = any::<(u64, u64)>;
    prop_oneof![
        (any_ranges(), any_ranges(), any_ranges(), vec(any::<[u8; 32]>(), 0..3)).prop_map(
            |(back_ends, covers, former, files)| Control::Rejoin {
                back_ends,
                covers,
                former,
                files
            }
        ),
        any_file(),
        (any::<u32>(), place(), place()).prop_map(|(stream, up, down)| Control::Resume {
            stream,
            up,
            down
        }),
        Just(Control::Resumed),
        Just(Control::Dissolve),
        (any_ancestors(), any::<bool>())
            .prop_map(|(ancestors, repairs)| Control::Ancestry { ancestors, repairs }),
        (any::<u32>(), any_ranges(), any_text(), any_cause()).prop_map(
            |(rank, back_ends, reason, cause)| Control::Broken { rank, back_ends, reason, cause }
        ),
        any_repaired(),
        any_state(),
        any_ranges().prop_map(|ranks| Control::Superseded { ranks }),
        (any::<u32>(), any_text()).prop_map(|(rank, reason)| Control::Referred { rank, reason }),
    ]
}

fn any_of_visits() -> impl Strategy<Value = Control> {
    prop_oneof![
        any_bytes().prop_map(|bytes| Control::Question { bytes }),
        (any::<bool>(), any_bytes()).prop_map(|(is_last, bytes)| Control::Reply { is_last, bytes }),
    ]
}

fn any_file() -> impl Strategy<Value = Control> {
    let bytes = vec(any::<u8>(), 1..40);
    (any_text(), any::<[u8; 32]>(), any::<[u32; 2]>(), bytes).prop_map(
        |(name, digest, [total, offset], bytes)| Control::File {
            name,
            digest,
            total,
            offset,
            bytes,
        },
    )
}

fn any_state() -> impl Strategy<Value = Control> {
    let values = (any_bytes(), any_bytes());
    (any::<(u32, u32, u64)>(), values, any_ranges()).prop_map(
        |((stream, filter, wave), (format, values), absorbed)| Control::State {
            stream,
            filter,
            wave,
            format,
            values,
            absorbed,
        },
    )
}

fn any_repaired() -> impl Strategy<Value = Control> {
    let orphans = vec(any::<u32>(), 0..9);
    let waves = vec(any::<(u32, u64, u64)>(), 0..4);
    (any::<[u32; 2]>(), orphans, any_ranges(), waves).prop_map(
        |([rank, adopter], orphans, back_ends, waves)| Control::Repaired {
            rank,
            adopter,
            orphans,
            back_ends,
            waves,
        },
    )
}
