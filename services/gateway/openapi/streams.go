package openapi

import (
	"maps"
	"regexp"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/rest"
)

// events describes the event stream, which has no translated route.
func (b *builder) events() object {
	op := b.newOperation("StreamRunEvents", nounOf(rest.EventsPath))
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
		"responses": withErrors(object{
			"200": object{
				// The other media type is not listed: generators would make it the only one.
				"description": "the run's events, as server-sent events whose data has the schema. Callers that accept JSON only get one document, as from poll",
				"content":     object{"text/event-stream": object{"schema": ref("StreamData")}},
			},
			"204": object{"description": "the run has ended, and no event follows the one of Last-Event-ID"},
		}, openwopv1.Engine_StreamRunEvents_FullMethodName),
	})
	b.addSecurity(op, openwopv1.Engine_StreamRunEvents_FullMethodName)
	return op
}

// watch describes the stream of changed rows.
func (b *builder) watch() object {
	op := b.newOperation("WatchRuns", nounOf(rest.WatchPath))
	maps.Copy(op, object{
		"responses": withErrors(object{"200": object{
			"description": "server-sent events, from when the headers are there: event run, with a RunSummary as its data, for each run that is created or whose row " +
				"changes. Events have no ids; who connects again lists the runs",
			"content": object{"text/event-stream": object{"schema": b.message((&hostv1.RunSummary{}).ProtoReflect().Descriptor())}},
		}}, hostv1.Host_WatchRuns_FullMethodName),
	})
	b.addSecurity(op, hostv1.Host_WatchRuns_FullMethodName)
	return op
}

// parameter matches a path parameter.
var parameter = regexp.MustCompile(`\{([^}]+)\}`)

// other describes an operation that calls no method. It needs no credential.
func (b *builder) other(o rest.Other) object {
	content := object{o.Media: object{"schema": ref(o.Schema)}}
	out := object{"200": object{"description": "done", "content": content}}
	if o.Path == rest.AssetPath {
		out["206"] = object{"description": "the requested range", "content": content}
		out["416"] = object{"description": "the requested range is outside the asset"}
	}
	op := b.newOperation(o.Name, o.Noun)
	op["security"] = []object{}
	op["responses"] = withErrors(out, "")
	if m := parameter.FindStringSubmatch(o.Path); m != nil {
		op["parameters"] = []object{{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}}}
	}
	return op
}
