package openapi

import (
	"maps"

	"google.golang.org/protobuf/reflect/protoreflect"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/rest"
)

// events describes the event stream, which has no translated route.
func (b *builder) events() object {
	op := b.newOperation("StreamRunEvents", rest.EventsPath)
	maps.Copy(op, object{
		"parameters": []object{
			{"name": "runId", "in": "path", "required": true, "schema": object{"type": "string"}},
			{
				"name":        "streamMode",
				"in":          "query",
				"description": "values, or any of updates, messages and debug, separated by commas",
				"schema":      object{"type": "string"},
			},
			{"name": "bufferMs", "in": "query", "schema": object{"type": "integer", "minimum": 0, "maximum": 5000}},
			{"name": "Last-Event-ID", "in": "header", "schema": object{"type": "string", "pattern": "^[0-9]+$"}},
		},
		"responses": b.withErrors(object{"200": object{
			"description": "the run's events, as server-sent events, or as one document to callers that accept JSON only",
			"content": object{
				"text/event-stream": object{"schema": object{"type": "string"}},
				"application/json":  object{"schema": b.message(pollResponse())},
			},
		}}, openwopv1.Engine_StreamRunEvents_FullMethodName),
	})
	b.addSecurity(op, openwopv1.Engine_StreamRunEvents_FullMethodName)
	return op
}

// watch describes the stream of changed rows.
func (b *builder) watch() object {
	b.message((&hostv1.RunSummary{}).ProtoReflect().Descriptor())
	op := b.newOperation("WatchRuns", rest.WatchPath)
	maps.Copy(op, object{
		"responses": b.withErrors(object{"200": object{
			"description": "server-sent events, from when the headers are there: event run, with a RunSummary as its data, for each run that is created or whose row " +
				"changes. Events have no ids; who connects again lists the runs",
			"content": object{"text/event-stream": object{"schema": object{"type": "string"}}},
		}}, hostv1.Host_WatchRuns_FullMethodName),
	})
	b.addSecurity(op, hostv1.Host_WatchRuns_FullMethodName)
	return op
}

func pollResponse() protoreflect.MessageDescriptor {
	return (&hostv1.PollRunEventsResponse{}).ProtoReflect().Descriptor()
}
