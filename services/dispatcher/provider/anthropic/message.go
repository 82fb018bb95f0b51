package anthropic

import (
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"
)

// addMessage adds a whole message as the events of a stream.
func (a *answer) addMessage(doc string) error {
	var m anthropic.Message
	if err := json.Unmarshal([]byte(doc), &m); err != nil {
		return newOrderError()
	}
	var body struct {
		Content []json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal([]byte(doc), &body) // it was read before
	events := []map[string]any{{"type": "message_start", "message": json.RawMessage(doc)}}
	for i, block := range body.Content {
		events = append(events,
			map[string]any{"type": "content_block_start", "index": i, "content_block": block},
			map[string]any{"type": "content_block_stop", "index": i})
	}
	end := map[string]any{"stop_reason": m.StopReason, "stop_details": rawOrNull(m.StopDetails.RawJSON())}
	events = append(events, map[string]any{"type": "message_delta", "delta": end}, map[string]any{"type": "message_stop"})
	for _, event := range events {
		var e anthropic.MessageStreamEventUnion
		b, err := json.Marshal(event)
		if err == nil {
			err = json.Unmarshal(b, &e)
		}
		if err != nil {
			return newOrderError()
		}
		if err := a.addEvent(e); err != nil {
			return err
		}
	}
	return nil
}

func rawOrNull(doc string) json.RawMessage {
	if doc == "" {
		return json.RawMessage("null")
	}
	return json.RawMessage(doc)
}
