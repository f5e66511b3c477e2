use super::*;
use crate::testing::{FakeHost, limits};

const TIMEOUT: Duration = Duration::from_millis(100);
const LEASE: Duration = Duration::from_millis(1100);

fn budget(owner: u64) -> Budget {
    Budget::new(owner, limits(8, 1000), TIMEOUT)
}

/// A limit of bytes that is not kept to the byte.
const ROOMY: u64 = 64 * 1024 * 1024;

fn roomy(owner: u64) -> Budget {
    Budget::new(owner, limits(8, ROOMY), TIMEOUT)
}

fn settle(budget: &Budget, host: &FakeHost, wanted: u32) -> Settled {
    budget.settle(host, wanted, 0).expect("no other worker writes")
}

#[test]
fn all_workers_together_get_no_more_permits_than_the_budget_has() {
    let host = FakeHost::default();
    let (one, two) = (budget(1), budget(2));
    let first = settle(&one, &host, 5);
    let second = settle(&two, &host, 5);
    assert_eq!((first.permits.len(), second.permits.len()), (5, 3));
    assert_eq!(settle(&one, &host, 1).permits.len(), 0);
    assert_eq!(second.in_flight, 8);
}

#[test]
fn a_dropped_permit_is_free_again_once_its_root_settles() {
    let host = FakeHost::default();
    let (one, two) = (budget(1), budget(2));
    let mut permits = settle(&one, &host, 8).permits;
    permits.truncate(6);
    assert!(!one.is_settled());
    assert_eq!(settle(&two, &host, 8).permits.len(), 0);
    assert_eq!(settle(&one, &host, 0).in_flight, 6);
    assert!(one.is_settled());
    assert_eq!(settle(&two, &host, 8).permits.len(), 2);
}

#[test]
fn each_root_holds_its_own_limit_against_the_sum_of_all() {
    let host = FakeHost::default();
    let (wide, narrow) = (budget(1), Budget::new(2, limits(3, 0), TIMEOUT));
    let held = settle(&narrow, &host, 8).permits;
    assert_eq!(held.len(), 3);
    let more = settle(&wide, &host, 8).permits;
    assert_eq!(more.len(), 5);
    drop(held);
    assert_eq!(settle(&narrow, &host, 1).permits.len(), 0);
}

#[test]
fn what_a_dead_root_held_is_reclaimed_after_its_lease_and_counted_as_lost_once() {
    let host = FakeHost::default();
    let (dead, one, two) = (budget(1), budget(2), budget(3));
    let _permits = settle(&dead, &host, 8).permits;
    host.sleep(LEASE);
    assert_eq!(settle(&one, &host, 1).permits.len(), 0);
    host.sleep(Duration::from_nanos(1));
    let after = settle(&one, &host, 8);
    assert_eq!((after.permits.len(), after.news.lost), (8, 8));
    assert_eq!(settle(&two, &host, 0).news.lost, 0);
}

#[test]
fn a_root_that_renews_its_row_keeps_what_it_holds() {
    let host = FakeHost::default();
    let (slow, other) = (budget(1), budget(2));
    let permits = settle(&slow, &host, 2).permits;
    for _ in 0..10 {
        host.sleep(LEASE / 2);
        assert_eq!(settle(&slow, &host, 0).news, News::default());
        assert_eq!(settle(&other, &host, 0).in_flight, 2);
    }
    assert!(permits.iter().all(|permit| !permit.is_void()));
}

#[test]
fn permits_of_a_root_that_was_taken_for_dead_are_void_and_free_nothing() {
    let host = FakeHost::default();
    let (stalled, other) = (budget(1), budget(2));
    let old = settle(&stalled, &host, 8).permits;
    host.sleep(2 * LEASE);
    let others = settle(&other, &host, 5);
    assert_eq!((others.permits.len(), others.news.lost), (5, 8));

    let back = settle(&stalled, &host, 8);
    assert!(back.news.forfeited);
    assert!(old.iter().all(Permit::is_void));
    assert_eq!(back.permits.len(), 3);
    drop(old);
    assert_eq!(settle(&stalled, &host, 0).in_flight, 8);
}

#[test]
fn a_spoilt_value_is_begun_anew_and_nobody_takes_himself_for_dead() {
    let host = FakeHost::default();
    let (one, two) = (budget(1), budget(2));
    let permits = (settle(&one, &host, 2).permits, settle(&two, &host, 3).permits);
    host.sleep(TIMEOUT);
    for spoilt in [b"?".to_vec(), vec![0; 1000], b"RMB1".to_vec()] {
        host.shared.replace(spoilt);
        let repaired = settle(&one, &host, 0);
        assert_eq!(repaired.news, News { repaired: true, ..News::default() });
        assert_eq!(settle(&two, &host, 0).news, News::default());
        assert_eq!(settle(&one, &host, 0).in_flight, 5);
        host.sleep(TIMEOUT);
    }
    assert!(!permits.0[0].is_void() && !permits.1[0].is_void());
}

#[test]
fn a_row_that_would_never_expire_is_dropped_and_its_mirrors_are_nobodys_loss() {
    let host = FakeHost::default();
    let mut table = Table::new(0);
    let all = Holding { mirrors: u32::MAX, bytes: u64::MAX, reserved: u64::MAX };
    table.put(99, u64::MAX, all);
    host.shared.replace(table.encode());
    let settled = settle(&budget(1), &host, 8);
    assert_eq!((settled.permits.len(), settled.in_flight), (8, 8));
    assert_eq!(settled.news, News { repaired: true, ..News::default() });
}

#[test]
fn a_row_of_the_longest_lease_stays_though_it_was_written_a_moment_ago() {
    let host = FakeHost::default();
    host.load_takes.set(TIMEOUT);
    let mut table = Table::new(0);
    let one = Holding { mirrors: 1, ..Holding::default() };
    table.put(99, nanoseconds(TIMEOUT + LONGEST_LEASE), one);
    host.shared.replace(table.encode());
    let settled = settle(&budget(1), &host, 0);
    assert_eq!((settled.in_flight, settled.news), (1, News::default()));
}

#[test]
fn lost_races_are_tried_again_but_not_for_ever() {
    let host = FakeHost::default();
    let one = budget(1);
    host.lost_races.set(ATTEMPTS - 1);
    assert_eq!(settle(&one, &host, 1).permits.len(), 1);
    host.lost_races.set(ATTEMPTS);
    assert!(one.settle(&host, 2, 0).is_none());
    assert_eq!(settle(&one, &host, 0).in_flight, 0);
}

#[test]
fn drops_are_numbered_over_the_whole_process() {
    let host = FakeHost::default();
    let (one, two) = (budget(1), budget(2));
    let settled = settle(&one, &host, 10);
    assert_eq!(settled.drops, 0..2);
    assert_eq!(two.settle(&host, 1, 4).unwrap().drops, 2..7);
}

#[test]
fn bytes_are_held_up_to_the_limit_of_the_process_and_freed_with_the_hold() {
    let host = FakeHost::default();
    let (one, two) = (budget(1), budget(2));
    let (mut first, mut second) = (one.hold(), two.hold());
    assert!(one.grow(&host, &mut first, 400));
    assert!(two.grow(&host, &mut second, 600));
    assert!(!one.grow(&host, &mut first, 1));
    drop(second);
    assert_eq!(settle(&two, &host, 0).bytes, 400);
    assert!(one.grow(&host, &mut first, 600));
    assert_eq!(settle(&two, &host, 0).bytes, 1000);
}

#[test]
fn a_busy_worker_asks_once_for_many_chunks_and_gives_back_what_it_does_not_hold() {
    let (host, [one, two]) = (FakeHost::default(), [1, 2].map(roomy));
    let mut hold = one.hold();
    for _ in 0..64 {
        assert!(one.grow(&host, &mut hold, 1024));
    }
    assert_eq!(host.loads.get(), 1);
    assert_eq!(settle(&one, &host, 0).bytes, 64 * 1024);
    let mut rest = two.hold();
    assert!(!two.grow(&host, &mut rest, ROOMY - 64 * 1024 + 1));
    assert!(two.grow(&host, &mut rest, ROOMY - 64 * 1024));
    assert!(!one.grow(&host, &mut hold, 1));
    drop((hold, rest));
    let _ = (settle(&one, &host, 0), settle(&two, &host, 0));
    assert!(one.grow(&host, &mut one.hold(), ROOMY));
}

#[test]
fn a_busy_worker_keeps_what_it_has_reserved_until_half_of_the_limit_is() {
    let (host, [one, two]) = (FakeHost::default(), [1, 2].map(roomy));
    let mut slow = one.hold();
    assert!(one.grow(&host, &mut slow, 1));
    let asks = |bytes| {
        let _ = settle(&one, &host, 0);
        let before = host.loads.get();
        assert!(one.grow(&host, &mut one.hold(), bytes));
        host.loads.get() - before
    };
    assert_eq!([ROOMY / 4, ROOMY / 4, ROOMY / 8].map(asks), [1, 0, 0]);
    let mut other = two.hold();
    assert!(two.grow(&host, &mut other, ROOMY / 4));
    assert_eq!([ROOMY / 4, ROOMY / 4].map(asks), [1, 1]);
    drop((slow, other));
    let _ = (settle(&one, &host, 0), settle(&two, &host, 0));
    assert!(two.grow(&host, &mut two.hold(), ROOMY));
}

#[test]
fn one_root_holds_no_more_than_its_vm_can_bear_whatever_the_process_may() {
    let host = FakeHost::default();
    let one = Budget::new(1, limits(8, u64::MAX), TIMEOUT);
    let (mut hold, mut other) = (one.hold(), one.hold());
    assert!(one.grow(&host, &mut hold, ROOT_BODY_BYTES));
    assert!(!one.grow(&host, &mut other, 1));
    drop(hold);
    assert!(one.grow(&host, &mut other, 1));
}

#[test]
fn a_mirror_that_has_ended_stays_published_until_its_root_settles() {
    let host = FakeHost::default();
    let (one, two) = (budget(1), budget(2));
    drop(settle(&one, &host, 8).permits);
    let mut hold = one.hold();
    assert!(one.grow(&host, &mut hold, 1));
    assert_eq!(settle(&two, &host, 0).in_flight, 8);
}
