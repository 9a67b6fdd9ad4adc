//! The cache of definitions.

use super::*;

fn cache() -> DefinitionCache<u8, u8> {
    DefinitionCache::new(1024, |_| 1)
}

async fn get(
    cache: &DefinitionCache<u8, u8>,
    applied: &AtomicU64,
    policy: CachePolicy,
    value: u8,
) -> u8 {
    let read = async { Ok::<_, ()>(value) };
    cache
        .get(1, policy, applied.load(Ordering::Acquire), read)
        .await
        .unwrap()
}

#[tokio::test]
async fn only_a_recent_value_comes_from_the_cache() {
    let (cache, applied) = (cache(), AtomicU64::new(0));

    assert_eq!(get(&cache, &applied, CachePolicy::Recent, 1).await, 1);
    assert_eq!(get(&cache, &applied, CachePolicy::Recent, 2).await, 1);
    assert_eq!(get(&cache, &applied, CachePolicy::Bypass, 3).await, 3);
    assert_eq!(get(&cache, &applied, CachePolicy::Recent, 4).await, 3);
}

#[tokio::test]
async fn a_definition_applied_at_this_core_invalidates_the_cache() {
    let (cache, applied) = (cache(), AtomicU64::new(0));
    assert_eq!(get(&cache, &applied, CachePolicy::Recent, 1).await, 1);

    applied.fetch_add(1, Ordering::AcqRel);
    assert_eq!(get(&cache, &applied, CachePolicy::Recent, 2).await, 2);

    // A read that starts before the commit may return the old value.
    let read = async {
        applied.fetch_add(1, Ordering::AcqRel);
        Ok::<_, ()>(2)
    };
    let before = applied.load(Ordering::Acquire);
    let slow = cache.get(1, CachePolicy::Bypass, before, read);
    assert_eq!(slow.await, Ok(2));
    assert_eq!(get(&cache, &applied, CachePolicy::Recent, 3).await, 3);
}

#[tokio::test]
async fn a_failure_is_not_cached() {
    let (cache, applied) = (cache(), AtomicU64::new(0));

    let read = async { Err("unavailable") };
    let failed = cache.get(1, CachePolicy::Recent, 0, read);
    assert_eq!(failed.await, Err("unavailable"));
    assert_eq!(get(&cache, &applied, CachePolicy::Recent, 1).await, 1);
}

#[tokio::test]
async fn a_hundred_thousand_stores_are_cached_and_long_definitions_up_to_the_capacity() {
    type Bytes = fn(&u32) -> usize;
    let of_bytes: [(Bytes, _); 2] = [(|_| 0, 100_000..=100_000), (|_| 10_000_000, 1..=26)];
    for (bytes, expected) in of_bytes {
        let cache = DefinitionCache::new(PRICE_LIST_BYTES, bytes);
        for store in 0..100_000_u32 {
            let read = async { Ok::<_, ()>(store) };
            let value = cache.get(store, CachePolicy::AnyAge, 0, read).await;
            assert_eq!(value, Ok(store));
        }
        cache.0.run_pending_tasks();

        let count = cache.0.entry_count();
        assert!(expected.contains(&count), "{count}");
    }
}
