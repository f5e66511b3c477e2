use super::pace::{CATCH_UP, LATE, LEAST, SHORTLY};
use super::*;
use crate::testing::{FakeHost, limits, post, target};

const TIMEOUT: Duration = Duration::from_millis(100);

fn outbox(host: &FakeHost, owner: u64, budget: u32) -> Outbox<FakeHost> {
    Outbox::new(host.clone(), Budget::new(owner, limits(budget, 1000), TIMEOUT))
}

fn push(outbox: &Outbox<FakeHost>, copies: usize) {
    for _ in 0..copies {
        let head_hold = outbox.hold_head(0).unwrap();
        let hold = Rc::new(outbox.hold());
        let request = Rc::new(Whole { head: post(&[]), head_hold, body: Vec::new(), hold });
        outbox.push(Copy { request, target: target("shadow", 0) });
    }
}

fn answered(status: u16) -> Option<Answer> {
    Some(Answer { status, local: false })
}

#[test]
fn a_copy_is_sent_at_the_next_tick_and_the_tick_then_rests() {
    let host = FakeHost::default();
    let outbox = outbox(&host, 1, 8);
    assert_eq!(host.period.get(), HOUSEKEEPING);
    push(&outbox, 2);
    assert_eq!((host.period.get(), host.calls.borrow().len()), (SOON, 0));
    outbox.tick();
    assert_eq!((host.period.get(), host.calls.borrow().len()), (HOUSEKEEPING, 2));
    assert_eq!((host.counted("sent"), host.gauged("in_flight")), (2, 2));
}

#[test]
fn few_copies_wait_a_little_for_more() {
    let host = FakeHost::default();
    let outbox = outbox(&host, 1, 1024);
    push(&outbox, 15);
    assert_eq!(host.period.get(), SHORTLY);
    push(&outbox, 1);
    assert_eq!(host.period.get(), SOON);
    outbox.tick();
    outbox.tick();
    assert_eq!(host.period.get(), HOUSEKEEPING);
    (1..=15).for_each(|call| outbox.ended(CallId(call), answered(200)));
    assert_eq!(host.period.get(), SHORTLY);
    outbox.ended(CallId(16), answered(200));
    assert_eq!(host.period.get(), SOON);
}

#[test]
fn copies_that_waited_for_more_do_not_make_the_tick_a_late_one() {
    let host = FakeHost::default();
    let outbox = outbox(&host, 1, 1024);
    push(&outbox, 15);
    host.sleep(SHORTLY);
    push(&outbox, 1);
    host.sleep(SOON);
    outbox.tick();
    assert_eq!(host.calls.borrow().len(), LEAST);
}

#[test]
fn an_answer_frees_its_permit_and_is_counted_by_its_class() {
    let host = FakeHost::default();
    let outbox = outbox(&host, 1, 8);
    push(&outbox, 1);
    outbox.tick();
    host.sleep(Duration::from_millis(7));
    outbox.ended(CallId(1), answered(404));
    assert_eq!((host.period.get(), host.counted("completed")), (SOON, 0));
    outbox.tick();
    assert_eq!((host.counted("completed"), host.counted("completed_4xx")), (1, 1));
    assert_eq!((host.gauged("in_flight"), host.durations.borrow().as_slice()), (0, [7].as_slice()));
    assert!(outbox.is_idle());
}

#[test]
fn an_end_that_was_told_twice_counts_once() {
    let host = FakeHost::default();
    let outbox = outbox(&host, 1, 8);
    push(&outbox, 1);
    outbox.tick();
    for _ in 0..2 {
        outbox.ended(CallId(1), answered(200));
        outbox.tick();
    }
    assert_eq!(host.counted("completed"), 1);
}

#[test]
fn what_the_budget_has_no_permit_for_is_dropped() {
    let host = FakeHost::default();
    let (one, two) = (outbox(&host, 1, 3), outbox(&host.another_vm(), 2, 3));
    push(&one, 2);
    one.tick();
    push(&two, 3);
    two.tick();
    assert_eq!((host.counted("sent"), host.counted("dropped.budget")), (3, 2));
    assert!(two.queue.borrow().is_empty());
}

#[test]
fn a_burst_is_spread_over_ticks_so_that_primary_requests_come_between() {
    let host = FakeHost::default();
    let outbox = outbox(&host, 1, 1000);
    push(&outbox, 200);
    let mut batches = vec![];
    while host.period.get() == SOON {
        let before = host.calls.borrow().len();
        outbox.tick();
        batches.push(host.calls.borrow().len() - before);
    }
    assert_eq!(batches, [50, 37, 28, 21, 16, 12, 9, 8, 8, 8, 3]);
    assert_eq!(host.counted("dropped.budget"), 0);
}

#[test]
fn what_comes_between_two_ticks_is_sent_at_any_rate_that_a_quarter_of_the_budget_bears() {
    let host = FakeHost::default();
    let outbox = outbox(&host, 1, 1024);
    for tick in 1..=100 {
        push(&outbox, 256);
        host.sleep(LATE);
        outbox.tick();
        let calls = host.calls.borrow().len();
        (1..=calls).for_each(|call| outbox.ended(CallId(call as u32), answered(200)));
        assert_eq!(host.counted("dropped.budget"), 0, "tick {tick}");
    }
}

#[test]
fn a_late_tick_sends_more_so_that_a_busy_worker_keeps_up() {
    let host = FakeHost::default();
    let outbox = outbox(&host, 1, 1000);
    push(&outbox, 500);
    host.sleep(LATE + Duration::from_millis(20));
    outbox.tick();
    let sent = 500 / 4 + 20 * CATCH_UP;
    assert_eq!(host.calls.borrow().len(), sent);
    host.sleep(LATE);
    outbox.tick();
    assert_eq!(host.calls.borrow().len(), sent + (500 - sent) / 4);
}

#[test]
fn a_stalled_tick_lets_no_more_queue_up_than_the_budget_could_send() {
    let host = FakeHost::default();
    let outbox = outbox(&host, 1, 3);
    push(&outbox, 10);
    assert_eq!((outbox.queue.borrow().len(), host.counted("dropped.budget")), (3, 7));
    outbox.tick();
    assert_eq!((host.counted("sent"), outbox.untold_drops.get()), (3, 0));
}

#[test]
fn a_tick_that_cannot_settle_drops_what_is_queued_and_tries_again() {
    let host = FakeHost::default();
    let outbox = outbox(&host, 1, 3);
    host.lost_races.set(16);
    push(&outbox, 2);
    outbox.tick();
    assert_eq!((host.counted("dropped.budget"), host.period.get()), (2, SHORTLY));
    outbox.tick();
    assert_eq!((outbox.untold_drops.get(), host.period.get()), (0, HOUSEKEEPING));
}

#[test]
fn a_call_that_is_refused_frees_its_permit() {
    for (refusal, counter) in
        [(Refusal::NoCluster, "dropped.no_cluster"), (Refusal::Refused, "dropped.refused")]
    {
        let host = FakeHost::default();
        let outbox = outbox(&host, 1, 3);
        host.refuses.set(Some(refusal));
        push(&outbox, 3);
        outbox.tick();
        assert_eq!((host.counted(counter), host.counted("sent")), (3, 0));
        assert_eq!(host.period.get(), SOON);
        outbox.tick();
        assert_eq!(host.gauged("in_flight"), 0);
        assert!(outbox.is_idle());
    }
}

#[test]
fn mirrors_of_a_dead_vm_are_counted_as_lost_with_the_outcomes_it_had_not_settled() {
    let host = FakeHost::default();
    let (dead, other) = (outbox(&host, 1, 8), outbox(&host.another_vm(), 2, 8));
    push(&dead, 3);
    dead.tick();
    dead.ended(CallId(1), answered(200));
    host.sleep(Duration::from_secs(2));
    other.tick();
    assert_eq!((host.counted("sent"), host.counted("lost"), host.counted("completed")), (3, 3, 0));
    assert_eq!(host.gauged("in_flight"), 0);
}

#[test]
fn a_root_that_was_taken_for_dead_counts_none_of_those_mirrors_again() {
    let host = FakeHost::default();
    let (stalled, other) = (outbox(&host, 1, 8), outbox(&host.another_vm(), 2, 8));
    push(&stalled, 3);
    stalled.tick();
    stalled.ended(CallId(1), answered(200));
    host.sleep(Duration::from_secs(2));
    other.tick();
    stalled.tick();
    stalled.ended(CallId(2), answered(200));
    stalled.ended(CallId(3), answered(200));
    stalled.tick();
    assert_eq!((host.counted("lost"), host.counted("completed")), (3, 0));
    assert!(stalled.is_idle());
}
