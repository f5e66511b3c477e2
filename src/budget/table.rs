//! The one value that all root contexts of the process share, and its wire format.
//!
//! Little-endian: a format mark (u32), the table's origin and its drops (u64 each), then per row the
//! owner (u64), the expiry in monotonic nanoseconds (u64), mirrors (u32), bytes and reserved bytes
//! (u64 each).

/// "RMB" and the format's version.
const MARK: u32 = u32::from_le_bytes(*b"RMB1");
const HEADER: usize = 20;
const ROW: usize = 36;

/// What all roots hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Tells this table from one begun anew after the value was spoilt: the time it was begun.
    pub origin: u64,
    /// Mirrors dropped for want of a permit since this table was begun.
    pub drops: u64,
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    owner: u64,
    /// The time by which the holding has ended, if the owner does not renew it.
    expires: u64,
    holding: Holding,
}

/// What one root holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    pub mirrors: u32,
    pub bytes: u64,
    /// The bytes that the root may hold without asking again; at least those it holds.
    pub reserved: u64,
}

impl Table {
    pub fn new(origin: u64) -> Self {
        Self { origin, ..Self::default() }
    }

    /// `None` if the bytes are not a table.
    pub fn decode(mut value: &[u8]) -> Option<Self> {
        let value = &mut value;
        if u32::from_le_bytes(take(value)?) != MARK {
            return None;
        }
        let mut table = Self::new(u64::from_le_bytes(take(value)?));
        table.drops = u64::from_le_bytes(take(value)?);
        while !value.is_empty() {
            table.rows.push(Row {
                owner: u64::from_le_bytes(take(value)?),
                expires: u64::from_le_bytes(take(value)?),
                holding: Holding {
                    mirrors: u32::from_le_bytes(take(value)?),
                    bytes: u64::from_le_bytes(take(value)?),
                    reserved: u64::from_le_bytes(take(value)?),
                },
            });
        }
        Some(table)
    }

    pub fn encode(&self) -> Vec<u8> {
        let rows = self.rows.len().saturating_mul(ROW);
        let mut value = Vec::with_capacity(rows.saturating_add(HEADER));
        value.extend(MARK.to_le_bytes());
        value.extend(self.origin.to_le_bytes());
        value.extend(self.drops.to_le_bytes());
        for Row { owner, expires, holding } in &self.rows {
            value.extend(owner.to_le_bytes());
            value.extend(expires.to_le_bytes());
            value.extend(holding.mirrors.to_le_bytes());
            value.extend(holding.bytes.to_le_bytes());
            value.extend(holding.reserved.to_le_bytes());
        }
        value
    }

    /// Takes a root's row out.
    pub fn take(&mut self, owner: u64) -> Option<Holding> {
        let index = self.rows.iter().position(|row| row.owner == owner)?;
        Some(self.rows.remove(index).holding)
    }

    /// Adds a root's row; one that holds nothing needs none.
    pub fn put(&mut self, owner: u64, expires: u64, holding: Holding) {
        if holding != Holding::default() {
            self.rows.push(Row { owner, expires, holding });
        }
    }

    /// Takes the rows out that are past their time, and tells how many mirrors they held.
    pub fn reclaim(&mut self, now: u64) -> u64 {
        let before = self.mirrors();
        self.rows.retain(|row| row.expires >= now);
        before.saturating_sub(self.mirrors())
    }

    /// Takes the rows out that claim to end after this time, and tells whether there were any. No root
    /// writes one: they would never be reclaimed.
    pub fn drop_beyond(&mut self, latest: u64) -> bool {
        let before = self.rows.len();
        self.rows.retain(|row| row.expires <= latest);
        self.rows.len() < before
    }

    /// The mirrors in flight in all rows.
    pub fn mirrors(&self) -> u64 {
        let mirrors = self.rows.iter().map(|row| u64::from(row.holding.mirrors));
        mirrors.fold(0, u64::saturating_add)
    }

    /// The bytes held in all rows.
    pub fn bytes(&self) -> u64 {
        self.rows.iter().map(|row| row.holding.bytes).fold(0, u64::saturating_add)
    }

    /// The bytes reserved in all rows.
    pub fn reserved(&self) -> u64 {
        self.rows.iter().map(|row| row.holding.reserved).fold(0, u64::saturating_add)
    }
}

fn take<const N: usize>(value: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = value.split_first_chunk()?;
    *value = rest;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(17);
        table.drops = 3;
        table.put(1, 100, Holding { mirrors: 5, bytes: 10, reserved: 11 });
        table.put(2, 200, Holding { mirrors: 7, bytes: 20, reserved: 22 });
        table
    }

    #[test]
    fn a_table_survives_its_encoding() {
        assert_eq!(Table::decode(&table().encode()), Some(table()));
    }

    #[test]
    fn a_value_that_is_cut_short_or_foreign_is_no_table() {
        let value = table().encode();
        for length in (0..value.len())
            .filter(|length| *length < HEADER || !(length - HEADER).is_multiple_of(ROW))
        {
            assert_eq!(Table::decode(&value[..length]), None, "{length} bytes");
        }
        assert_eq!(Table::decode(b"RMB0 and some more of it"), None);
    }

    #[test]
    fn hostile_numbers_do_not_overflow_the_sums() {
        const MOST: Holding = Holding { mirrors: u32::MAX, bytes: u64::MAX, reserved: u64::MAX };
        let mut table = Table::new(0);
        table.put(1, u64::MAX, MOST);
        table.put(2, u64::MAX, MOST);
        assert_eq!(table.mirrors(), 2 * u64::from(u32::MAX));
        assert_eq!((table.bytes(), table.reserved()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn only_rows_past_their_time_are_reclaimed() {
        let mut table = table();
        assert_eq!(table.reclaim(100), 0);
        assert_eq!(table.reclaim(101), 5);
        assert_eq!((table.mirrors(), table.bytes(), table.reserved()), (7, 20, 22));
    }

    #[test]
    fn a_root_that_holds_nothing_leaves_no_row() {
        let mut table = table();
        assert_eq!(table.take(1), Some(Holding { mirrors: 5, bytes: 10, reserved: 11 }));
        table.put(1, 100, Holding::default());
        assert_eq!(table.take(1), None);
    }
}
