package engine

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/idempotency"
	"waybill.dev/waybill/services/gateway/wirejson"
)

// once lists the methods with idempotency records and makes their responses. CreateRun and
// ForkRun derive ids from the key instead.
var once = map[string]func() proto.Message{
	openwopv1.Engine_CancelRun_FullMethodName:      func() proto.Message { return &openwopv1.CancelRunResponse{} },
	openwopv1.Engine_BulkCancelRuns_FullMethodName: func() proto.Message { return &openwopv1.BulkCancelRunsResponse{} },
	hostv1.Host_BulkDeleteRuns_FullMethodName:      func() proto.Message { return &hostv1.BulkDeleteRunsResponse{} },
	hostv1.Host_BulkRetryRuns_FullMethodName:       func() proto.Message { return &hostv1.BulkRetryRunsResponse{} },
	hostv1.Host_BulkAnnotateRuns_FullMethodName:    func() proto.Message { return &hostv1.BulkAnnotateRunsResponse{} },
	hostv1.Host_ForkNode_FullMethodName:            func() proto.Message { return &hostv1.ForkNodeResponse{} },
	hostv1.Host_CreateAnnotation_FullMethodName:    func() proto.Message { return &hostv1.CreateAnnotationResponse{} },
	hostv1.Host_PutWorkflow_FullMethodName:         func() proto.Message { return &hostv1.PutWorkflowResponse{} },
	hostv1.Host_DeleteWorkflow_FullMethodName:      func() proto.Message { return &hostv1.DeleteWorkflowResponse{} },

	openwopv1.Engine_PauseRun_FullMethodName:                func() proto.Message { return &openwopv1.PauseRunResponse{} },
	openwopv1.Engine_ResumeRun_FullMethodName:               func() proto.Message { return &openwopv1.ResumeRunResponse{} },
	openwopv1.Engine_ResolveInterruptByRun_FullMethodName:   func() proto.Message { return &openwopv1.ResolveInterruptByRunResponse{} },
	openwopv1.Engine_ResolveInterruptByToken_FullMethodName: func() proto.Message { return &openwopv1.ResolveInterruptByTokenResponse{} },

	openwopv1.Engine_RegisterWebhook_FullMethodName:   func() proto.Message { return &openwopv1.RegisterWebhookResponse{} },
	openwopv1.Engine_UnregisterWebhook_FullMethodName: func() proto.Message { return &emptypb.Empty{} },
	hostv1.Host_RotateWebhookSecret_FullMethodName:    func() proto.Message { return &hostv1.RotateWebhookSecretResponse{} },

	hostv1.Host_RetryQuarantinedRun_FullMethodName: func() proto.Message { return &hostv1.RetryQuarantinedRunResponse{} },
	hostv1.Host_EndQuarantinedRun_FullMethodName:   func() proto.Message { return &hostv1.EndQuarantinedRunResponse{} },
}

// Repeatable reports whether a repeated request of a method, with the same key, gets the first answer.
func Repeatable(method string) bool {
	return once[method] != nil || method == openwopv1.Engine_CreateRun_FullMethodName || method == openwopv1.Engine_ForkRun_FullMethodName
}

// statuses are the HTTP statuses of successes other than 200, for first and repeated
// requests.
var statuses = map[string]string{
	hostv1.Host_CreateAnnotation_FullMethodName: "201",
	hostv1.Host_ForkNode_FullMethodName:         "201",
	openwopv1.Engine_PauseRun_FullMethodName:    "202",
	openwopv1.Engine_ResumeRun_FullMethodName:   "202",

	openwopv1.Engine_RegisterWebhook_FullMethodName:   "201",
	openwopv1.Engine_UnregisterWebhook_FullMethodName: "204",
	hostv1.Host_DeleteRun_FullMethodName:              "204",
	hostv1.Host_ReleaseRun_FullMethodName:             "204",
	hostv1.Host_ReleaseInterrupt_FullMethodName:       "204",
	hostv1.Host_DeleteSavedView_FullMethodName:        "204",
}

// SetStatus is an interceptor that passes the HTTP status of a success to the REST
// translation.
func SetStatus(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	res, err := next(ctx, req)
	if status := statuses[info.FullMethod]; status != "" && err == nil {
		setMeta(ctx, MetaStatus, status)
	}
	return res, err
}

// CheckMeta is an interceptor that rejects metadata of changes that is there more than once.
func CheckMeta(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	for _, name := range []string{MetaIdempotencyKey, MetaDedup, MetaForceEngine, MetaInterrupt} {
		if n := len(metadata.ValueFromIncomingContext(ctx, name)); n > 1 {
			return nil, fault.InvalidHeader(name, "the metadata is there %d times; send it once", n)
		}
	}
	return next(ctx, req)
}

// tenantOf returns the tenant of a request's idempotency record.
func tenantOf(ctx context.Context, req any) string {
	if r, ok := req.(*openwopv1.ResolveInterruptByTokenRequest); ok {
		return tokenTenant(r.GetToken())
	}
	return auth.From(ctx).Tenant
}

// Once is an interceptor that returns the first answer to a repeated request. It serves REST
// and gRPC alike.
func (s *Service) Once(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	fresh, guarded := once[info.FullMethod]
	key, keyed := metaValue(ctx, MetaIdempotencyKey)
	if !guarded || !keyed {
		return next(ctx, req)
	}
	if err := idempotency.CheckKey(key); err != nil {
		return nil, err
	}
	doc, err := wirejson.Append(nil, req.(proto.Message)) //nolint:forcetypeassert // gRPC hands over messages only
	if err != nil {
		return nil, err
	}
	digest, err := idempotency.Digest(doc)
	if err != nil {
		return nil, err
	}
	r := idempotency.Request{Tenant: tenantOf(ctx, req), Operation: info.FullMethod, Key: key, Digest: digest}
	var first proto.Message
	raw, replayed, err := s.deps.Idempotency.Do(ctx, r, func() ([]byte, error) {
		res, err := next(ctx, req)
		if err != nil {
			return nil, err
		}
		first = res.(proto.Message) //nolint:forcetypeassert // gRPC handlers return messages only
		return proto.Marshal(recordable(first))
	})
	if replayed {
		setMeta(ctx, MetaReplay, "true")
	}
	if err != nil {
		return nil, err
	}
	if !replayed {
		return first, nil
	}
	res := fresh()
	if err := proto.Unmarshal(raw, res); err != nil {
		return nil, fmt.Errorf("read recorded answer: %w", err)
	}
	if err := s.restore(ctx, req, res); err != nil {
		return nil, err
	}
	if put, ok := res.(*hostv1.PutWorkflowResponse); ok {
		setPutStatus(ctx, put)
	}
	return res, nil
}

// recordable returns a response as it may be recorded: without secrets, and without content of a run,
// which can be erased.
func recordable(res proto.Message) proto.Message {
	if r, ok := res.(*hostv1.CreateAnnotationResponse); ok {
		return annotationReference(r)
	}
	return withoutSecret(res)
}

// restore completes a recorded response.
func (s *Service) restore(ctx context.Context, req any, res proto.Message) error {
	if r, ok := res.(*hostv1.CreateAnnotationResponse); ok {
		return s.restoreAnnotation(ctx, req.(*hostv1.CreateAnnotationRequest), r) //nolint:forcetypeassert // of this method
	}
	s.restoreSecret(ctx, res)
	return nil
}
