//! A writer that dies at any point of an update leaves readers that return, and a page that the next
//! writer can take over.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use datapage::{
    ClockId, ClockMode, Features, Instant, Page, PageValues, SLOT_BYTES, Scale, Writer,
};
use fuzz::preempt::{Access, Preemptible, interrupted};
use fuzz::subject::{Answer, Call, Code, Subject};

const IDS: [i32; 7] = [0, 1, 4, 5, 6, 7, 11];

fn values(secs: i64) -> PageValues {
    let scale = Scale { mask: u64::MAX, mult: 1, shift: 0 };
    let mut values = PageValues {
        clock_mode: ClockMode::COUNTER,
        steered: scale,
        raw: scale,
        hrtimer_res: 1,
        coarse_res: 4_000_000,
        ..PageValues::default()
    };
    for id in IDS {
        values.set(ClockId(id), Instant { secs, nanos: 7 });
    }
    values
}

/// Every clock's seconds, `None` for one that falls back.
fn seconds(subject: &Subject<'_, Preemptible>) -> Vec<Option<i64>> {
    let read = |id| {
        let call = Call::ClockGettime(id);
        let answer: Answer = subject.call(call);
        (answer != subject.fallback(call)).then_some(answer.words[0])
    };
    IDS.into_iter().map(read).collect()
}

#[test]
fn readers_of_a_dead_writers_page_return_and_the_next_writer_takes_it_over() {
    let mut deaths = 0;
    for store in 0.. {
        let mut page = Page::<Preemptible>::of_zeros();
        let (mut writer, page) = Writer::split(&mut page);
        writer.format(Features::empty(), SLOT_BYTES);
        writer.publish(&values(100).validate().unwrap());
        let subject = Subject::Code(Code::new(page));
        let update = values(200).validate().unwrap();
        let (died, _) = interrupted(
            Access::Store,
            store,
            || resume_unwind(Box::new("killed")),
            || catch_unwind(AssertUnwindSafe(|| writer.publish(&update))).is_err(),
        );
        if !died {
            assert_eq!(seconds(&subject), [Some(200); 7]);
            break;
        }
        deaths += 1;
        // Before the first store nothing has happened; after it the page says that it is unstable.
        let expected = if store == 0 { Some(100) } else { None };
        assert_eq!(seconds(&subject), [expected; 7], "killed before store {store}");
        assert_eq!(page.is_odd(), store > 0);

        let mut writer = writer.adopt().unwrap();
        writer.publish(&values(300).validate().unwrap());
        assert_eq!(seconds(&subject), [Some(300); 7], "killed before store {store}");
    }
    assert!(deaths > 30, "{deaths} stores in an update");
}
