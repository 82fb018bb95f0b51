package openapi

import (
	"maps"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/rest"
	"waybill.dev/waybill/services/gateway/runview"
)

// events describes the event stream, which has no translated route.
func (b *builder) events() object {
	o := newOperation(openwopv1.Engine_StreamRunEvents_FullMethodName, rest.EventsPath)
	op := b.describeOperation(o, object{
		"200": object{
			"description": "The run's events, as server-sent events whose data has the schema. The id of an event is its sequence. " +
				"Callers whose Accept has application/json and no text/event-stream get the events so far as one document.",
			"headers": o.successHeaders(),
			"content": eventsContent{b.media(o, ref("StreamData")), object{"schema": ref("PollRunEventsResult")}},
		},
		"204": object{"description": "The run has ended, and no event follows the one of Last-Event-ID.", "headers": o.successHeaders()},
	})
	op["parameters"] = []object{
		b.pathParameter("runId"),
		{
			"name": "streamMode", "in": "query",
			"description": "values, or any of updates, messages and debug, separated by commas.",
			"schema": object{
				"type": "string", "default": "updates",
				"pattern": "^(values|(updates|messages|debug)(,(updates|messages|debug))*)$",
			},
		},
		{
			"name": "bufferMs", "in": "query",
			"description": "Milliseconds in which events are collected and sent as one; 0 sends each at once.",
			"schema":      object{"type": "integer", "minimum": 0, "maximum": runview.MaxBufferMs, "default": 0},
		},
		{
			"name": "lastEventId", "in": "query",
			"description": "As the header Last-Event-ID, which wins, for clients that cannot send headers.",
			"schema":      object{"type": "string", "pattern": "^[0-9]+$"},
		},
		resumeParameter,
	}
	return op
}

// eventsContent are the two forms of a run's events. Generators take the first form, but prefer
// application/json to all others: it is described as a range of media types, which includes it.
type eventsContent struct {
	Stream   object `json:"text/event-stream"`
	Document object `json:"application/*"`
}

// watch describes the stream of changed rows.
func (b *builder) watch() object {
	o := newOperation(hostv1.Host_WatchRuns_FullMethodName, rest.WatchPath)
	return b.describeOperation(o, object{"200": object{
		"description": "Server-sent events, from when the headers are there: event run, with a RunSummary as its data, for each run that is created or whose row " +
			"changes. Events have no ids; a client that reconnects lists the runs.",
		"headers": o.successHeaders(),
		"content": object{"text/event-stream": b.media(o, b.message((&hostv1.RunSummary{}).ProtoReflect().Descriptor()))},
	}})
}

// other describes an operation that calls no method. It needs no credential.
func (b *builder) other(o rest.Other) object {
	in := &operation{id: lowerFirst(o.Name), noun: o.Noun, headers: o.Headers}
	good := object{"description": o.Text, "headers": in.successHeaders(), "content": object{o.Media: b.media(in, ref(o.Schema))}}
	out := object{"200": good}
	var params []object
	if m := braces.FindStringSubmatch(o.Path); m != nil {
		params = append(params, b.pathParameter(m[1]))
	}
	if o.Path == rest.AssetPath {
		in.limited = true
		good["headers"] = in.successHeaders()
		maps.Copy(good["headers"].(object), named("Content-Disposition"))
		part := maps.Clone(good)
		part["description"] = "The requested part."
		part["headers"] = requiredHeaders(maps.Clone(good["headers"].(object)), "Content-Range")
		out["206"] = part
		params = append(params, rangeParameter)
	}
	op := b.describeOperation(in, out)
	op["description"] = o.Text
	if len(params) > 0 {
		op["parameters"] = params
	}
	return op
}
