package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"waybill.dev/waybill/protocol/wire"
)

const eventsHead = "# Events\n\n" +
	"Generated from `protocol/wire/catalogue.go` by `make gen`; do not edit.\n\n" +
	"The event types of the protocol. A host emits those of the features it has; a vendor's own begin with the vendor's name and\n" +
	"are of the group other. `waybill explain TYPE` says the same.\n\n" +
	"| type | group | meaning |\n|---|---|---|\n"

// eventTypes is the page of all event types.
func eventTypes() string {
	var b strings.Builder
	b.WriteString(eventsHead)
	for _, t := range wire.EventTypes() {
		r, _ := t.Describe()
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", t, r.Group, r.Meaning)
	}
	return b.String()
}

// eventRow is the console's data of an event type.
type eventRow struct {
	Group   wire.Group `json:"group"`
	Meaning string     `json:"meaning"`
}

// eventTable is the table of the console.
func eventTable() string {
	all := map[wire.EventType]eventRow{}
	for _, t := range wire.EventTypes() {
		r, _ := t.Describe()
		all[t] = eventRow(r)
	}
	return document(all)
}

// document renders v as a JSON file.
func document(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		log.Fatal(err)
	}
	return b.String()
}
