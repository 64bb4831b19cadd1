//! Reading the table of devices, and their rings.

use super::{DEVICES, Device, DeviceAt, DeviceState, DeviceValues, ENTRY_SIZE, TABLE_AT, TYPE_NAME};
use crate::block::{DEVICE_RING, Ring, RingValues};
use crate::read::{Block, Memory, RingAt, text};

impl Block {
    /// The devices that the runtime has introduced, also those that are gone. One that is just being introduced is left out.
    ///
    /// # Errors
    /// If their table cannot be read.
    pub fn devices<M: Memory>(&self, memory: &M) -> Result<Vec<DeviceAt>, M::Error> {
        let entry = ENTRY_SIZE as usize / size_of::<u64>();
        let read = || memory.words(self.at + TABLE_AT, DEVICES * entry);
        // Where another device took the entry in the meantime, the first look may have some words of each.
        let (first, second) = (read()?, read()?);
        let devices =
            first.chunks(entry).zip(second.chunks(entry)).enumerate().filter_map(|(index, (words, later))| {
                let (words, name) = words.split_at_checked(Device::WORDS)?;
                let (values, later) = (DeviceValues::from_words(words)?, DeviceValues::from_words(later)?);
                let none = [DeviceState::Free as u64, DeviceState::Coming as u64];
                let same = values.began == later.began && ![values.state, later.state].iter().any(|s| none.contains(s));
                let name = name.get(..TYPE_NAME / size_of::<u64>())?;
                same.then(|| DeviceAt { index, values, type_name: text(name) })
            });
        Ok(devices.collect())
    }

    /// The ring with the records of a device, if it has one that is still its own.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn device_ring<M: Memory>(&self, memory: &M, device: &DeviceAt) -> Result<Option<RingAt>, M::Error> {
        let Some(index) = device.values.ring.checked_sub(1).filter(|index| *index < self.header.rings_used) else {
            return Ok(None);
        };
        let words = memory.words(self.at + self.shape.ring_at(index), Ring::WORDS)?;
        let kind = DEVICE_RING | u64::from(device.number().cast_unsigned());
        let values = RingValues::from_words(&words).filter(|values| values.kind == kind);
        Ok(values.map(|values| RingAt { index, values }))
    }
}
