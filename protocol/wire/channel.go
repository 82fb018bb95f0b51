package wire

import "encoding/json"

// Channel is what folding a channel's writes needs of its declaration. A run pins
// it in its record, so that whoever folds the log needs no definition.
type Channel struct {
	Reducer string          `json:"reducer"`
	Default json.RawMessage `json:"default,omitempty"`
	MaxSize int64           `json:"maxSize,omitempty"`
	// TTLMillis is how old an entry may become; 0: as old as it likes.
	TTLMillis int64 `json:"ttlMs,omitempty"`
	// SchemaVersion of 0 stands for 1.
	SchemaVersion int64 `json:"schemaVersion,omitempty"`
	// CompatibleWith are the older versions whose writes are held to Schema, which is
	// there for them alone.
	CompatibleWith []int64         `json:"compatibleWith,omitempty"`
	Schema         json.RawMessage `json:"schema,omitempty"`
	// Shown is told of the channel in the place of what it holds, which is sensitive;
	// nil: what it holds.
	Shown json.RawMessage `json:"shown,omitempty"`
}

// ChannelWritten is the payload of channel.written: the input of a write, never
// what came of it (OpenWOP host contract §5.9).
type ChannelWritten struct {
	Channel string          `json:"channel"`
	Value   json.RawMessage `json:"value"`
	// Reducer is the one in effect at the write. Whoever folds the event uses it,
	// whatever is declared by then.
	Reducer   string `json:"reducer"`
	NodeID    string `json:"nodeId,omitempty"`
	WrittenAt string `json:"writtenAt"`
	// SchemaVersion of 0 stands for 1.
	SchemaVersion int64 `json:"schemaVersion,omitempty"`
}
