package snapshot

// Place is the key of a run's snapshot in the store.
var Place = place
