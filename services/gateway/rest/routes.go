package rest

import (
	"net/http"
	"strings"

	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
)

// Route is one REST operation of proto/rest.yaml, with what the checks before the
// translation and the OpenAPI document need. A test compares it with that file.
type Route struct {
	HTTP string
	// Path has its parameters in braces, by their proto names.
	Path string
	// Method is the full gRPC method name.
	Method string
	// Body makes the message for the request body; nil without a body.
	Body func() proto.Message
	// FromPath are members of Body that come from the path.
	FromPath []string
	// BodyOptional allows an empty body.
	BodyOptional bool
	// Document names the response member that is the whole body; "" if the response message
	// is.
	Document string
	// Success is the status of a success.
	Success int
	// Also is another such status; 0 if there is none.
	Also int
	// Conditional: the answer has an ETag, and 304 answers an If-None-Match with it.
	Conditional bool
}

// Routes lists the operations that are translated to gRPC.
var Routes = []Route{
	{
		HTTP:        http.MethodGet,
		Path:        "/.well-known/openwop",
		Method:      openwopv1.Engine_GetCapabilities_FullMethodName,
		Document:    "document",
		Success:     200,
		Conditional: true,
	},
	{
		HTTP:     http.MethodGet,
		Path:     "/v1/workflows/{workflow_id}",
		Method:   openwopv1.Engine_GetWorkflow_FullMethodName,
		Document: "definition",
		Success:  200,
	},
	{
		HTTP: http.MethodPost, Path: "/v1/runs", Method: openwopv1.Engine_CreateRun_FullMethodName, Success: 201,
		Body: func() proto.Message { return &openwopv1.CreateRunRequest{} },
	},
	{
		HTTP:        http.MethodGet,
		Path:        "/v1/runs/{run_id}",
		Method:      openwopv1.Engine_GetRun_FullMethodName,
		Document:    "snapshot",
		Success:     200,
		Conditional: true,
	},
	{
		HTTP:         http.MethodPost,
		Path:         "/v1/runs/{run_id}/cancel",
		Method:       openwopv1.Engine_CancelRun_FullMethodName,
		Success:      200,
		Body:         func() proto.Message { return &openwopv1.CancelRunRequest{} },
		FromPath:     []string{"runId"},
		BodyOptional: true,
	},
	{
		HTTP:    http.MethodPost,
		Path:    "/v1/runs:bulk-cancel",
		Method:  openwopv1.Engine_BulkCancelRuns_FullMethodName,
		Success: 200,
		Body:    func() proto.Message { return &openwopv1.BulkCancelRunsRequest{} },
	},
	{
		HTTP: http.MethodPost, Path: "/v1/runs/{run_id}:fork", Method: openwopv1.Engine_ForkRun_FullMethodName, Success: 201,
		Body: func() proto.Message { return &openwopv1.ForkRunRequest{} }, FromPath: []string{"runId"},
	},
	{
		HTTP:         http.MethodPost,
		Path:         "/v1/runs/{run_id}:pause",
		Method:       openwopv1.Engine_PauseRun_FullMethodName,
		Success:      202,
		Body:         func() proto.Message { return &openwopv1.PauseRunRequest{} },
		FromPath:     []string{"runId"},
		BodyOptional: true,
	},
	{
		HTTP:         http.MethodPost,
		Path:         "/v1/runs/{run_id}:resume",
		Method:       openwopv1.Engine_ResumeRun_FullMethodName,
		Success:      202,
		Body:         func() proto.Message { return &openwopv1.ResumeRunRequest{} },
		FromPath:     []string{"runId"},
		BodyOptional: true,
	},
	{
		HTTP:     http.MethodPost,
		Path:     "/v1/runs/{run_id}/interrupts/{node_id}",
		Method:   openwopv1.Engine_ResolveInterruptByRun_FullMethodName,
		Success:  200,
		Body:     func() proto.Message { return &openwopv1.ResolveInterruptByRunRequest{} },
		FromPath: []string{"runId", "nodeId"},
	},
	{
		HTTP:     http.MethodPost,
		Path:     "/v1/interrupts/{token}",
		Method:   openwopv1.Engine_ResolveInterruptByToken_FullMethodName,
		Success:  200,
		Body:     func() proto.Message { return &openwopv1.ResolveInterruptByTokenRequest{} },
		FromPath: []string{"token"},
	},
	{
		HTTP:     http.MethodGet,
		Path:     "/v1/interrupts/{token}",
		Method:   openwopv1.Engine_InspectInterruptByToken_FullMethodName,
		Document: "interrupt",
		Success:  200,
	},
	{
		HTTP:     http.MethodGet,
		Path:     "/v1/runs/{run_id}:diff",
		Method:   hostv1.Host_DiffRuns_FullMethodName,
		Document: "diff",
		Success:  200,
	},
	{
		HTTP:     http.MethodPost,
		Path:     "/v1/runs/{run_id}/annotations",
		Method:   hostv1.Host_CreateAnnotation_FullMethodName,
		Document: "annotation",
		Success:  201,
		Body:     func() proto.Message { return &hostv1.CreateAnnotationRequest{} },
		FromPath: []string{"runId"},
	},
	{
		HTTP:    http.MethodGet,
		Path:    "/v1/runs/{run_id}/annotations",
		Method:  hostv1.Host_ListAnnotations_FullMethodName,
		Success: 200,
	},
	{HTTP: http.MethodGet, Path: "/v1/audit/verify", Method: openwopv1.Engine_VerifyAuditLog_FullMethodName, Success: 200},
	{HTTP: http.MethodGet, Path: "/v1/audit", Method: hostv1.Host_ListAuditEntries_FullMethodName, Success: 200},
	{
		HTTP: http.MethodPost, Path: "/v1/webhooks", Method: openwopv1.Engine_RegisterWebhook_FullMethodName, Success: 201,
		Body: func() proto.Message { return &openwopv1.RegisterWebhookRequest{} },
	},
	{
		HTTP:    http.MethodDelete,
		Path:    "/v1/webhooks/{webhook_id}",
		Method:  openwopv1.Engine_UnregisterWebhook_FullMethodName,
		Success: 204,
	},
	{HTTP: http.MethodGet, Path: "/v1/webhooks", Method: hostv1.Host_ListWebhooks_FullMethodName, Success: 200},
	{
		HTTP:     http.MethodPost,
		Path:     "/v1/webhooks/{webhook_id}:redeliver",
		Method:   hostv1.Host_RedeliverWebhookEvent_FullMethodName,
		Success:  200,
		Body:     func() proto.Message { return &hostv1.RedeliverWebhookEventRequest{} },
		FromPath: []string{"webhookId"},
	},
	{
		HTTP:         http.MethodPost,
		Path:         "/v1/webhooks/{webhook_id}:rotate",
		Method:       hostv1.Host_RotateWebhookSecret_FullMethodName,
		Success:      200,
		Body:         func() proto.Message { return &hostv1.RotateWebhookSecretRequest{} },
		FromPath:     []string{"webhookId"},
		BodyOptional: true,
	},
	{
		HTTP:    http.MethodGet,
		Path:    "/v1/webhooks/{webhook_id}/deliveries",
		Method:  hostv1.Host_ListWebhookDeliveries_FullMethodName,
		Success: 200,
	},
	{HTTP: http.MethodGet, Path: "/v1/quarantine", Method: hostv1.Host_ListQuarantinedRuns_FullMethodName, Success: 200},
	{
		HTTP:         http.MethodPost,
		Path:         "/v1/quarantine/{run_id}:retry",
		Method:       hostv1.Host_RetryQuarantinedRun_FullMethodName,
		Success:      200,
		Body:         func() proto.Message { return &hostv1.RetryQuarantinedRunRequest{} },
		FromPath:     []string{"runId"},
		BodyOptional: true,
	},
	{
		HTTP:         http.MethodPost,
		Path:         "/v1/quarantine/{run_id}:end",
		Method:       hostv1.Host_EndQuarantinedRun_FullMethodName,
		Success:      200,
		Body:         func() proto.Message { return &hostv1.EndQuarantinedRunRequest{} },
		FromPath:     []string{"runId"},
		BodyOptional: true,
	},
	{HTTP: http.MethodDelete, Path: "/v1/runs/{run_id}", Method: hostv1.Host_DeleteRun_FullMethodName, Success: 204},
	{
		HTTP:    http.MethodPost,
		Path:    "/v1/runs:erase",
		Method:  hostv1.Host_EraseRuns_FullMethodName,
		Success: 200,
		Body:    func() proto.Message { return &hostv1.EraseRunsRequest{} },
	},
	{
		HTTP:    http.MethodPost,
		Path:    "/v1/runs:archive",
		Method:  hostv1.Host_ArchiveRuns_FullMethodName,
		Success: 200,
		Body:    func() proto.Message { return &hostv1.ArchiveRunsRequest{} },
	},
	{
		HTTP:     http.MethodGet,
		Path:     "/v1/runs/{run_id}/archive",
		Method:   hostv1.Host_GetRunArchive_FullMethodName,
		Document: "archive",
		Success:  200,
	},
	{
		HTTP:     http.MethodPost,
		Path:     "/v1/runs/{run_id}/hold",
		Method:   hostv1.Host_HoldRun_FullMethodName,
		Success:  200,
		Body:     func() proto.Message { return &hostv1.HoldRunRequest{} },
		FromPath: []string{"runId"},
	},
	{HTTP: http.MethodDelete, Path: "/v1/runs/{run_id}/hold", Method: hostv1.Host_ReleaseRun_FullMethodName, Success: 204},
	{HTTP: http.MethodGet, Path: "/v1/holds", Method: hostv1.Host_ListHolds_FullMethodName, Success: 200},
	{
		HTTP:         http.MethodPost,
		Path:         "/v1/tenant:erase",
		Method:       hostv1.Host_EraseTenant_FullMethodName,
		Success:      200,
		Body:         func() proto.Message { return &hostv1.EraseTenantRequest{} },
		BodyOptional: true,
	},
	{HTTP: http.MethodGet, Path: "/v1/retention", Method: hostv1.Host_GetRetention_FullMethodName, Success: 200},
	{HTTP: http.MethodGet, Path: "/v1/system", Method: hostv1.Host_GetSystem_FullMethodName, Success: 200},
	{HTTP: http.MethodGet, Path: "/v1/runs/{run_id}:owner", Method: hostv1.Host_GetRunOwner_FullMethodName, Success: 200},
	{
		HTTP:     http.MethodGet,
		Path:     "/v1/runs/{run_id}:view",
		Method:   hostv1.Host_GetRunView_FullMethodName,
		Document: "view",
		Success:  200,
	},
	{
		HTTP:     http.MethodGet,
		Path:     "/v1/runs/{run_id}/nodes/{node_id}/input",
		Method:   hostv1.Host_GetNodeInput_FullMethodName,
		Document: "input",
		Success:  200,
	},
	{
		HTTP:     http.MethodPost,
		Path:     "/v1/runs/{run_id}/nodes/{node_id}/fork",
		Method:   hostv1.Host_ForkNode_FullMethodName,
		Success:  201,
		Body:     func() proto.Message { return &hostv1.ForkNodeRequest{} },
		FromPath: []string{"runId", "nodeId"},
	},
	{
		HTTP: http.MethodPost, Path: "/v1/answers:read", Method: hostv1.Host_ReadAnswer_FullMethodName, Success: 200,
		Body: func() proto.Message { return &hostv1.ReadAnswerRequest{} },
	},
	{
		HTTP:    http.MethodGet,
		Path:    "/v1/runs/{run_id}/events/poll",
		Method:  hostv1.Host_PollRunEvents_FullMethodName,
		Success: 200,
	},
	{
		HTTP:     http.MethodGet,
		Path:     "/v1/runs/{run_id}/debug-bundle",
		Method:   hostv1.Host_GetDebugBundle_FullMethodName,
		Document: "bundle",
		Success:  200,
	},
	{HTTP: http.MethodGet, Path: "/v1/runs", Method: hostv1.Host_ListRuns_FullMethodName, Success: 200},
	{HTTP: http.MethodGet, Path: "/v1/runs:count", Method: hostv1.Host_CountRuns_FullMethodName, Success: 200},
	{
		HTTP: http.MethodPost, Path: "/v1/runs:bulk-delete", Method: hostv1.Host_BulkDeleteRuns_FullMethodName, Success: 200,
		Body: func() proto.Message { return &hostv1.BulkDeleteRunsRequest{} },
	},
	{
		HTTP: http.MethodPost, Path: "/v1/runs:bulk-retry", Method: hostv1.Host_BulkRetryRuns_FullMethodName, Success: 200,
		Body: func() proto.Message { return &hostv1.BulkRetryRunsRequest{} },
	},
	{
		HTTP: http.MethodPost, Path: "/v1/runs:bulk-annotate", Method: hostv1.Host_BulkAnnotateRuns_FullMethodName, Success: 200,
		Body: func() proto.Message { return &hostv1.BulkAnnotateRunsRequest{} },
	},
	{HTTP: http.MethodGet, Path: "/v1/interrupts", Method: hostv1.Host_ListInterrupts_FullMethodName, Success: 200},
	{HTTP: http.MethodGet, Path: "/v1/interrupts:count", Method: hostv1.Host_CountInterrupts_FullMethodName, Success: 200},
	{
		HTTP:         http.MethodPost,
		Path:         "/v1/runs/{run_id}/interrupts/{node_id}/assignee",
		Method:       hostv1.Host_AssignInterrupt_FullMethodName,
		Success:      200,
		Body:         func() proto.Message { return &hostv1.AssignInterruptRequest{} },
		FromPath:     []string{"runId", "nodeId"},
		BodyOptional: true,
	},
	{
		HTTP:    http.MethodDelete,
		Path:    "/v1/runs/{run_id}/interrupts/{node_id}/assignee",
		Method:  hostv1.Host_ReleaseInterrupt_FullMethodName,
		Success: 204,
	},
	{HTTP: http.MethodGet, Path: "/v1/views", Method: hostv1.Host_ListSavedViews_FullMethodName, Success: 200},
	{
		HTTP: http.MethodPost, Path: "/v1/views", Method: hostv1.Host_PutSavedView_FullMethodName, Success: 200,
		Body: func() proto.Message { return &hostv1.PutSavedViewRequest{} },
	},
	{HTTP: http.MethodDelete, Path: "/v1/views/{view_id}", Method: hostv1.Host_DeleteSavedView_FullMethodName, Success: 204},
	{
		HTTP:    http.MethodGet,
		Path:    "/v1/models:capabilities",
		Method:  hostv1.Host_ListModelCapabilities_FullMethodName,
		Success: 200,
	},
	{
		HTTP:    http.MethodGet,
		Path:    "/v1/models:substitutions",
		Method:  hostv1.Host_ListModelSubstitutions_FullMethodName,
		Success: 200,
	},
	{HTTP: http.MethodGet, Path: "/v1/workflows", Method: hostv1.Host_ListWorkflows_FullMethodName, Success: 200},
	{
		HTTP:    http.MethodGet,
		Path:    "/v1/workflows:statistics",
		Method:  hostv1.Host_ListWorkflowStatistics_FullMethodName,
		Success: 200,
	},
	{HTTP: http.MethodGet, Path: "/v1/statistics", Method: hostv1.Host_GetStatistics_FullMethodName, Success: 200},
	{HTTP: http.MethodGet, Path: "/v1/statistics/tenants", Method: hostv1.Host_ListTenantStatistics_FullMethodName, Success: 200},
	{HTTP: http.MethodGet, Path: "/v1/answers", Method: hostv1.Host_ListAnswers_FullMethodName, Success: 200},
	{
		HTTP: http.MethodPost, Path: "/v1/workflows", Method: hostv1.Host_PutWorkflow_FullMethodName, Success: 201, Also: 200,
		Body: func() proto.Message { return &openwopv1.JsonDocument{} },
	},
	{
		HTTP: http.MethodPost, Path: "/v1/workflows:validate", Method: hostv1.Host_ValidateWorkflow_FullMethodName, Success: 200,
		Body: func() proto.Message { return &openwopv1.JsonDocument{} },
	},
	{
		HTTP:    http.MethodGet,
		Path:    "/v1/workflows/{workflow_id}/versions",
		Method:  hostv1.Host_ListWorkflowVersions_FullMethodName,
		Success: 200,
	},
	{
		HTTP:    http.MethodGet,
		Path:    "/v1/workflows/{workflow_id}:diff",
		Method:  hostv1.Host_DiffWorkflow_FullMethodName,
		Success: 200,
	},
	{
		HTTP:    http.MethodDelete,
		Path:    "/v1/workflows/{workflow_id}",
		Method:  hostv1.Host_DeleteWorkflow_FullMethodName,
		Success: 200,
	},
	{
		HTTP:     http.MethodGet,
		Path:     "/schemas/envelopes/{file}",
		Method:   hostv1.Host_GetEnvelopeSchema_FullMethodName,
		Document: "schema",
		Success:  200,
	},
}

// tokenPath is the prefix of routes whose token is the credential.
const tokenPath = "/v1/interrupts/"

// ByToken reports whether a token in the path is the credential.
func (r *Route) ByToken() bool { return r.Path == tokenPath+"{token}" }

// token returns the token in the path of a route that needs no other credential.
func (r *Route) token(path string) (string, bool) {
	if !r.ByToken() {
		return "", false
	}
	return strings.TrimPrefix(path, tokenPath), true
}

// EventsPath and WatchPath are the routes of the streams, which are not translated.
const (
	EventsPath = "/v1/runs/{run_id}/events"
	WatchPath  = "/v1/runs:watch"
)

// Other is a GET operation that calls no method of the public services, for the OpenAPI document.
type Other struct {
	// Path has its parameter in braces.
	Path string
	// Name is spelled as a method's.
	Name, Noun string
	// Media is the media type of the answer, Schema its component in the document.
	Media, Schema string
	// Text describes it.
	Text string
	// Headers are sent with each success, in addition to Cache-Control.
	Headers []string
}

// The paths of these operations.
const (
	HealthPath   = "/healthz"
	ReadyPath    = "/readyz"
	OpenAPIPath  = "/v1/openapi.json"
	AsyncAPIPath = "/v1/asyncapi.json"
	AssetPath    = AssetsPrefix + "{token}"
)

// Others lists them.
var Others = []Other{
	{HealthPath, "GetHealth", "discovery", jsonMedia, "Health", "The process runs.", nil},
	{ReadyPath, "GetReadiness", "discovery", jsonMedia, "Health", "The host can process requests; with warnings, if there are any.", nil},
	{OpenAPIPath, "GetOpenapi", "discovery", jsonMedia, "JsonObject", "This document.", nil},
	{AsyncAPIPath, "GetAsyncapi", "discovery", jsonMedia, "JsonObject", "What the host sends: streams, webhooks and the run log.", nil},
	{schemasPrefix + "{file}", "GetFileSchema", "schemas", schemaMedia, "JsonObject", "The JSON Schema of a kind of file.", anyOrigin},
	{schemasPrefix + "config/{file}", "GetConfigSchema", "schemas", schemaMedia, "JsonObject", "The JSON Schema of the config of a node type.", anyOrigin},
	{AssetPath, "GetAsset", "assets", "*/*", "Bytes", "An image, a sound or a file that a model produced. The token is the credential.", assetHeaders},
}

var (
	anyOrigin    = []string{"Access-Control-Allow-Origin"}
	assetHeaders = []string{"Accept-Ranges", "Content-Security-Policy", "Referrer-Policy"}
)

const (
	jsonMedia   = "application/json"
	schemaMedia = "application/schema+json"
)

// stream is a route that is answered with a stream.
type stream struct {
	path string
	// method is the full name of the gRPC method behind it.
	method string
	query  []parameter
	serve  http.Handler
}

// streamOf returns the stream at a path; nil if there is none.
func (h *Handler) streamOf(path string) *stream {
	for i := range h.streams {
		if matches(h.streams[i].path, path) {
			return &h.streams[i]
		}
	}
	return nil
}
