package bedrock_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/bedrock"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	double "waybill.dev/waybill/test/double/bedrock"
)

// model is an inference profile, whose name has to be escaped in a path.
const model = "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0"

func ask() provider.Request { return providertest.Ask(model, "private words") }

// TestMain hides the credentials of the machine.
func TestMain(m *testing.M) {
	for name := range map[string]bool{
		"AWS_ACCESS_KEY_ID": true, "AWS_SECRET_ACCESS_KEY": true, "AWS_SESSION_TOKEN": true, "AWS_PROFILE": true,
		"AWS_REGION": true, "AWS_DEFAULT_REGION": true, "AWS_BEARER_TOKEN_BEDROCK": true,
	} {
		_ = os.Unsetenv(name)
	}
	_ = os.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	_ = os.Setenv("AWS_CONFIG_FILE", "/nonexistent/config")
	_ = os.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials")
	goleak.VerifyTestMain(m)
}

func TestProvider_PassesTheSuite(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	providertest.Run(t, func(t *testing.T) provider.Provider {
		t.Helper()
		return open(t, signing(newDouble(t, reply{Body: answer()}).URL))
	}, providertest.Options{Request: ask(), Stalls: func(t *testing.T) provider.Provider {
		t.Helper()
		d := newDouble(t, reply{Body: double.Chunks(start, textStart, piece("one ")), Stall: true})
		return open(t, signing(d.URL))
	}})
}

// The signature includes all that the operator adds.
func TestCall_SignsTheRequest(t *testing.T) {
	t.Parallel()
	d := newDouble(t, reply{Body: answer()})
	cfg := signing(d.URL)
	cfg.Server.Extras = outbound.Extras{
		Headers: map[string]provider.Secret{"X-Team": "a  b"},
		Query:   map[string]string{"trace": "1 2", "a": "ä/"},
		Body:    map[string]json.RawMessage{"metadata": json.RawMessage(`{"user_id":"u"}`)},
	}
	req := ask()
	req.Schema, req.SchemaName = []byte(`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}`), "answer"
	req.InvocationID, req.Traceparent = "i-1", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	res, pieces := providertest.Answer(t, open(t, cfg), req)
	require.Equal(t, "one two 😀", res.Text)
	require.Equal(t, "claude-x", res.Model)
	require.NotEmpty(t, pieces)
	require.Equal(t, provider.Usage{
		InputTokens: 9, OutputTokens: 7, TotalTokens: 16, CacheReadTokens: 100, CacheWriteTokens: 20, CacheApart: true, Known: true,
	}, res.Usage)
	require.Equal(t, "/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Ainference-profile%2Feu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream", d.Last().Path)
	require.NotContains(t, d.Last().Members, "model")
	require.NotContains(t, d.Last().Members, "stream")
	require.JSONEq(t, `"bedrock-2023-05-31"`, string(d.Last().Members["anthropic_version"]))
	require.JSONEq(t, `{"user_id":"u"}`, string(d.Last().Members["metadata"]))
	require.Contains(t, string(d.Last().Members["output_config"]), `{"b":{"type":"string"},"a":`, "the author's order of properties")
	require.Equal(t, "a  b", d.Last().Header.Get("X-Team"))
	require.Equal(t, "i-1", d.Last().Header.Get("Idempotency-Key"))
	require.Equal(t, req.Traceparent, d.Last().Header.Get("Traceparent"))
	require.Empty(t, d.Last().Header.Get("X-Api-Key"))
}

// A wrong signature is reported without what was signed.
func TestCall_ReportsAWrongSignature(t *testing.T) {
	t.Parallel()
	d := newDouble(t, reply{})
	for name, spoil := range map[string]func(*bedrock.Config){
		"secret":  func(c *bedrock.Config) { c.SecretAccessKey = "another" },
		"id":      func(c *bedrock.Config) { c.AccessKeyID = "ANOTHER" },
		"region":  func(c *bedrock.Config) { c.Region = "us-east-1" },
		"session": func(c *bedrock.Config) { c.SessionToken = "another-session-of-the-host" },
	} {
		cfg := signing(d.URL)
		spoil(&cfg)
		e := failure(t, open(t, cfg), ask())
		require.Equal(t, provider.CodeCredentialRequired, e.Code, name)
		require.Equal(t, 403, e.Status, name)
		require.False(t, e.Retryable, name)
		require.Empty(t, e.Quote, name)
	}
}

func TestCall_SendsAKeyAsAToken(t *testing.T) {
	t.Parallel()
	d := newDouble(t, reply{Body: answer()})
	p := open(t, bedrock.Config{Server: outbound.Server{BaseURL: d.URL, APIKey: hostKey}, Region: region})
	providertest.Answer(t, p, ask())
	require.Equal(t, []string{"Bearer " + hostKey}, d.Last().Header.Values("Authorization"))
	req := ask()
	req.Credential = tenantKey
	for _, p := range []provider.Provider{p, open(t, signing(d.URL)), open(t, bedrock.Config{Server: outbound.Server{BaseURL: d.URL}, Region: region})} {
		providertest.Answer(t, p, req)
		require.Equal(t, []string{"Bearer " + tenantKey}, d.Last().Header.Values("Authorization"), "the tenant's own key")
		require.Empty(t, d.Last().Header.Get("X-Amz-Security-Token"))
	}
	req.Credential = "another-key-of-a-tenant"
	e := failure(t, p, req)
	require.Equal(t, provider.CodeCredentialRequired, e.Code)
	require.Contains(t, e.Message, "the tenant's key for provider bedrock")
	require.Equal(t, "Authentication failed: the API Key is not valid: [REDACTED]", e.Quote)
}

// Without credentials of the settings, AWS's default chain has them.
func TestCall_UsesTheDefaultChain(t *testing.T) { //nolint:paralleltest // sets the environment
	d := newDouble(t, reply{Body: answer()})
	bare := bedrock.Config{Server: outbound.Server{BaseURL: d.URL}, Region: region}
	e := failure(t, open(t, bare), ask())
	require.Equal(t, provider.CodeCredentialRequired, e.Code)
	require.Contains(t, e.Message, "default chain has no credentials")
	require.Zero(t, e.Status)

	t.Run("variables", func(t *testing.T) { //nolint:paralleltest // as above
		t.Setenv("AWS_ACCESS_KEY_ID", keyID)
		t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
		t.Setenv("AWS_REGION", region)
		providertest.Answer(t, open(t, bedrock.Config{Server: outbound.Server{BaseURL: d.URL}}), ask())
		require.Contains(t, d.Last().Header.Get("Authorization"), "Credential="+keyID)
	})
	t.Run("a profile", func(t *testing.T) { //nolint:paralleltest // as above
		file := filepath.Join(t.TempDir(), "credentials")
		require.NoError(t, os.WriteFile(file, []byte("[team]\naws_access_key_id="+keyID+"\naws_secret_access_key="+secretKey+"\n"), 0o600))
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
		cfg := bare
		cfg.Profile = "team"
		providertest.Answer(t, open(t, cfg), ask())
		cfg.Profile = "another"
		_, err := bedrock.New(cfg)
		require.ErrorContains(t, err, "AWS's shared files cannot be used")
	})
	t.Run("a key", func(t *testing.T) { //nolint:paralleltest // as above
		t.Setenv("AWS_BEARER_TOKEN_BEDROCK", hostKey)
		providertest.Answer(t, open(t, bare), ask())
		require.Equal(t, []string{"Bearer " + hostKey}, d.Last().Header.Values("Authorization"))
		_, err := bedrock.New(signing(d.URL))
		require.ErrorContains(t, err, "AWS_BEARER_TOKEN_BEDROCK is set, and would be used instead")
		keyed := bare
		keyed.Server.APIKey = tenantKey
		providertest.Answer(t, open(t, keyed), ask())
		require.Equal(t, []string{"Bearer " + tenantKey}, d.Last().Header.Values("Authorization"), "the settings take precedence")
	})
}

func TestNew_NamesFieldValueAndRemedy(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]bedrock.Config{
		"aws.region: missing; set it, or AWS_REGION":              {},
		`aws.region: "EU": want a region such as eu-central-1`:    {Region: "EU"},
		`aws.region: "eu-central-1.evil.example/": want a region`: {Region: "eu-central-1.evil.example/"},
		`baseUrl: "http://h/v1": must not have a path`:            {Region: region, Server: outbound.Server{BaseURL: "http://h/v1"}},
		`key: "[REDACTED]"`: {Region: region, Server: outbound.Server{APIKey: "a b"}},
	} {
		_, err := bedrock.New(cfg)
		require.ErrorContains(t, err, want)
	}
	p := open(t, bedrock.Config{Region: region})
	require.Equal(t, "bedrock", p.ID())
	require.Equal(t, projection.Anthropic, p.Dialect(model))
	require.Equal(t, []provider.SchemaVia{provider.ViaFormat, provider.ViaTool, provider.ViaWords}, p.SchemaForms(model))
}

// Every way in which an answer can end.
func TestCall_ReadsAmazonsStream(t *testing.T) {
	t.Parallel()
	toolStart := `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"answer","input":{}}}`
	input := func(text string) string {
		return `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"` + text + `"}}`
	}
	thinking := []string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
		blockStop,
	}
	unknown := double.Frame(`{}`, ":message-type", "event", ":event-type", "somethingNew")
	for name, tc := range map[string]struct {
		body []byte
		via  provider.SchemaVia
		text string
		stop provider.StopClass
	}{
		"clean":         {answer(), "", "one two 😀", provider.StopClean},
		"a ping":        {append(double.Chunks(`{"type":"ping"}`), answer()...), "", "one two 😀", provider.StopClean},
		"unknown event": {append(unknown, answer()...), "", "one two 😀", provider.StopClean},
		"truncated":     {double.Chunks(start, textStart, piece("one"), blockStop, end("max_tokens"), stop), "", "one", provider.StopTruncated},
		"window":        {double.Chunks(start, textStart, piece("one"), blockStop, end("model_context_window_exceeded"), stop), "", "one", provider.StopTruncated},
		"refused":       {double.Chunks(start, textStart, piece("no"), blockStop, end("refusal"), stop), "", "no", provider.StopRefused},
		"stop sequence": {double.Chunks(start, textStart, piece("one"), blockStop, end("stop_sequence"), stop), "", "one", provider.StopSequence},
		"unknown stop":  {double.Chunks(start, textStart, piece("one"), blockStop, end("tired"), stop), "", "one", provider.StopUnknown},
		"a tool":        {double.Chunks(start, toolStart, input(`{\"a\":`), input(`1}`), blockStop, end("tool_use"), stop), provider.ViaTool, `{"a":1}`, provider.StopClean},
		"after thoughts": {
			double.Chunks(append(append([]string{start}, thinking...),
				`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"one"}}`, `{"type":"content_block_stop","index":1}`, end("end_turn"), stop)...),
			"", "one", provider.StopClean,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask()
			if tc.via != "" {
				req.Schema, req.SchemaName, req.Via = []byte(`{"type":"object"}`), "answer", tc.via
			}
			res, _ := providertest.Answer(t, open(t, signing(newDouble(t, reply{Body: tc.body}).URL)), req)
			require.Equal(t, tc.text, res.Text)
			require.Equal(t, tc.stop, res.Stop)
		})
	}
	whole := `{"type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"one"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":7}}`
	res, _ := providertest.Answer(t, open(t, signing(newDouble(t, reply{Label: "application/json", Body: []byte(whole)}).URL)), ask())
	require.Equal(t, "one", res.Text, "a gateway that does not stream")
	require.Equal(t, 9, res.Usage.InputTokens)
}

// Errors are classified by their names, in responses and in streams.
func TestCall_ClassifiesErrors(t *testing.T) {
	t.Parallel()
	begun := double.Chunks(start, textStart, piece("one"))
	within := func(kind, message string) reply {
		return reply{Body: append(begun[:len(begun):len(begun)], double.Exception(kind, `{"message":"`+message+`"}`)...)}
	}
	status := func(code int, kind, body string) reply {
		return reply{Status: code, Kind: kind, Label: "application/json", Body: []byte(body)}
	}
	for name, tc := range map[string]struct {
		reply
		code                string
		retryable, capacity bool
	}{
		"throttled":             {status(429, "ThrottlingException", `{"message":"Too many tokens, please wait"}`), provider.CodeQuota, true, true},
		"throttled, as 400":     {status(400, "ThrottlingException:http://x", `{"message":"Rate exceeded"}`), provider.CodeQuota, true, true},
		"throttled, no header":  {status(429, "", `{"message":"slow"}`), provider.CodeQuota, true, true},
		"a quota":               {status(400, "ServiceQuotaExceededException", `{"message":"quota"}`), provider.CodeQuota, false, false},
		"not ready":             {status(429, "ModelNotReadyException", `{"message":"wait"}`), provider.CodeUnavailable, true, true},
		"model timeout":         {status(408, "ModelTimeoutException", `{"message":"slow"}`), provider.CodeUnavailable, true, false},
		"model error":           {status(424, "ModelErrorException", `{"message":"boom"}`), provider.CodeUnavailable, true, false},
		"server error":          {status(500, "InternalServerException", `{"message":"boom"}`), provider.CodeUnavailable, true, false},
		"unavailable":           {status(503, "ServiceUnavailableException", `{"message":"busy"}`), provider.CodeUnavailable, true, true},
		"a page":                {reply{Status: 502, Label: "text/html", Body: []byte("<html>")}, provider.CodeUnavailable, true, false},
		"no access":             {status(403, "AccessDeniedException", `{"message":"You don't have access to the model"}`), provider.CodeCredentialRequired, false, false},
		"expired":               {status(403, "ExpiredTokenException", `{"message":"expired"}`), provider.CodeCredentialRequired, false, false},
		"unknown client":        {status(403, "UnrecognizedClientException", `{"message":"The security token is invalid"}`), provider.CodeCredentialRequired, false, false},
		"no such model":         {status(404, "ResourceNotFoundException", `{"message":"Could not resolve the foundation model"}`), provider.CodeModelNotSupported, false, false},
		"no such model, 400":    {status(400, "ValidationException", `{"message":"The provided model identifier is invalid."}`), provider.CodeModelNotSupported, false, false},
		"needs a profile":       {status(400, "ValidationException", `{"message":"Invocation of model ID x with on-demand throughput isn't supported. Retry your request with the ID or ARN of an inference profile"}`), provider.CodeModelNotSupported, false, false},
		"too long":              {status(400, "ValidationException", `{"message":"Input is too long for requested model."}`), provider.CodeContentTooLong, false, false},
		"the schema":            {status(400, "ValidationException", `{"message":"output_config: Extra inputs are not permitted"}`), provider.CodeSchemaInvalid, false, false},
		"another 400":           {status(400, "ValidationException", `{"message":"temperature: range: -1..1"}`), provider.CodeInvalidRequest, false, false},
		"a name in the body":    {status(400, "", `{"__type":"com.amazon.coral#ThrottlingException","code":"ThrottlingException","message":"slow"}`), provider.CodeQuota, true, true},
		"in stream, throttled":  {within("throttlingException", "slow"), provider.CodeQuota, true, true},
		"in stream, model":      {within("modelStreamErrorException", "boom"), provider.CodeUnavailable, true, false},
		"in stream, server":     {within("internalServerException", "boom"), provider.CodeUnavailable, true, false},
		"in stream, busy":       {within("serviceUnavailableException", "busy"), provider.CodeUnavailable, true, true},
		"in stream, timeout":    {within("modelTimeoutException", "slow"), provider.CodeUnavailable, true, false},
		"in stream, validation": {within("validationException", "Input is too long for requested model."), provider.CodeContentTooLong, false, false},
		"in stream, unknown":    {within("strangeException", "boom"), provider.CodeUnavailable, true, false},
		"in stream, an error":   {reply{Body: append(begun[:len(begun):len(begun)], double.Frame("", ":message-type", "error", ":error-code", "InternalError", ":error-message", "boom")...)}, provider.CodeUnavailable, true, false},
		"in stream, no payload": {reply{Body: append(begun[:len(begun):len(begun)], double.Exception("internalServerException", ``)...)}, provider.CodeUnavailable, true, false},
		"Anthropic's own":       {reply{Body: append(begun[:len(begun):len(begun)], double.Chunks(`{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`)...)}, provider.CodeUnavailable, true, true},
		"a frame of no type":    {reply{Body: append(begun[:len(begun):len(begun)], double.Frame("{}")...)}, provider.CodeUnavailable, true, false},
		"a chunk of no base64":  {reply{Body: append(begun[:len(begun):len(begun)], double.Frame(`{"bytes":"%"}`, ":message-type", "event", ":event-type", "chunk")...)}, provider.CodeUnavailable, true, false},
		"nothing":               {reply{}, provider.CodeUnavailable, true, false},
		"text":                  {reply{Body: []byte("hello, this is no stream of frames at all")}, provider.CodeUnavailable, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask()
			req.Schema, req.SchemaName = []byte(`{"type":"object"}`), "answer"
			e := failure(t, open(t, signing(newDouble(t, tc.reply).URL)), req)
			require.Equal(t, tc.code, e.Code, e.Message)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.capacity, e.Capacity, e.Message)
			require.NotContains(t, e.Message, "could not be reached")
		})
	}
	e := failure(t, open(t, signing(newDouble(t, reply{Status: 429, Kind: "ThrottlingException", Header: map[string]string{"Retry-After": "7"}}).URL)), ask())
	require.Equal(t, 7*time.Second, e.RetryAfter)
}

// Cut at any byte, or with any byte changed, an answer is complete or an error.
func TestCall_NeverTakesAPartForTheWhole(t *testing.T) {
	t.Parallel()
	body := answer()
	d := newDouble(t, reply{})
	p := open(t, signing(d.URL))
	ended := len(body) - len(double.Chunks(stop)) // with a stop reason; the last event says nothing more
	for at := 0; at < len(body); at += 7 {
		d.answerWith(body[:at])
		res, err := p.Call(t.Context(), ask(), nil)
		if at < ended {
			require.Error(t, err, at)
		} else if err == nil {
			require.Equal(t, "one two 😀", res.Text, at)
		}
		changed := append([]byte{}, body...)
		changed[at] ^= 0x10
		d.answerWith(changed)
		res, err = p.Call(t.Context(), ask(), nil)
		require.Error(t, err, "byte %d: %q", at, res.Text) // frames have checksums
	}
	d.answerWith(body)
	res, err := p.Call(t.Context(), ask(), nil)
	require.NoError(t, err)
	require.Equal(t, "one two 😀", res.Text)
}

// Cut at any byte, or with a byte that is another one, an answer is complete or an error.
func TestMutations_GiveTheAnswerOrAnError(t *testing.T) {
	t.Parallel()
	whole := answer()
	s := newDouble(t, reply{Body: whole})
	p := open(t, signing(s.URL))
	check := func(body []byte, what string, at int) {
		s.answerWith(body)
		res, err := p.Call(t.Context(), ask(), nil)
		if err == nil {
			require.Equal(t, "one two 😀", res.Text, "%s at %d", what, at)
		}
	}
	for at := range whole {
		check(whole[:at], "cut", at)
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x20
		check(damaged, "damaged", at)
	}
}
