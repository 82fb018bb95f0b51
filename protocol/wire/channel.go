package wire

import "encoding/json"

// Channel is the part of a channel's declaration that folding its writes requires. The run's record
// pins it, so that readers of the log need no definition.
type Channel struct {
	Reducer string          `json:"reducer"`
	Default json.RawMessage `json:"default,omitempty"`
	MaxSize int64           `json:"maxSize,omitempty"`
	// TTLMillis is the maximum age of an entry; 0 means no limit.
	TTLMillis int64 `json:"ttlMs,omitempty"`
	// SchemaVersion 0 means 1.
	SchemaVersion int64 `json:"schemaVersion,omitempty"`
	// CompatibleWith lists the older versions whose writes are validated against Schema. Schema is
	// set only if there are any.
	CompatibleWith []int64         `json:"compatibleWith,omitempty"`
	Schema         json.RawMessage `json:"schema,omitempty"`
	// Shown replaces the channel's value where it is displayed, because the value is sensitive;
	// nil means the
	// value is displayed.
	Shown json.RawMessage `json:"shown,omitempty"`
}

// ChannelWritten is the payload of channel.written: the input of a write, not its result (OpenWOP
// host contract §5.9).
type ChannelWritten struct {
	Channel string          `json:"channel"`
	Value   json.RawMessage `json:"value"`
	// Reducer is the reducer in effect at the write. Folding uses it even if the declaration has
	// changed since.
	Reducer   string `json:"reducer"`
	NodeID    string `json:"nodeId,omitempty"`
	WrittenAt string `json:"writtenAt"`
	// SchemaVersion 0 means 1.
	SchemaVersion int64 `json:"schemaVersion,omitempty"`
}
