//! Which core removes what is past its retention: one at a time, by a lease.

use std::time::Duration;

use super::lease_clock;
use crate::prelude::*;

/// Acquires or renews the lease for a core, unless another one holds it. Returns whether it has it. One that ends later
/// than a new one was acquired before the clock was set back.
pub async fn hold(
    transaction: &impl ConnectionTrait,
    owner: Uuid,
    lease: Duration,
) -> Result<bool, Error> {
    let (now, value) = lease_clock::expiry_sql(transaction, Duration::ZERO, "$1");
    let (end, end_value) = lease_clock::expiry_sql(transaction, lease, "$2");
    let update = format!(
        "UPDATE retention_leases SET owner = $3, expires_at = {end}
         WHERE owner = $3 OR expires_at <= {now} OR expires_at > {end}"
    );
    Ok(rows::execute(transaction, &update, [value, end_value, owner.into()]).await? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[tokio::test]
    async fn one_core_has_the_lease_until_it_ends() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let cores = [(); 2].map(|()| Uuid::new_v4());
            let holds = async |core| {
                let hold = storage.write(move |transaction| async move {
                    hold(&transaction, core, Duration::from_hours(1)).await
                });
                hold.await.unwrap()
            };

            assert!(holds(cores[0]).await);
            assert!(holds(cores[0]).await, "it renews it");
            assert!(!holds(cores[1]).await);

            fixture::execute(&storage, "UPDATE retention_leases SET expires_at = 1").await;
            assert!(holds(cores[1]).await);
            assert!(!holds(cores[0]).await);
        }
    }
}
