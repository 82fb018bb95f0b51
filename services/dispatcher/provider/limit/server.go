package limit

import (
	"encoding/json"
	"maps"
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/suggest"
)

// API is the interface that a server has.
type API string

// The interfaces.
const (
	OpenAIChat      API = "openai-chat"
	OpenAIResponses API = "openai-responses"
	Anthropic       API = "anthropic"
	Gemini          API = "gemini"
	AzureOpenAI     API = "azure-openai"
	Bedrock         API = "bedrock"
	Vertex          API = "vertex"
)

// apis are the interfaces, in the order of messages.
var apis = []API{OpenAIChat, OpenAIResponses, Anthropic, Gemini, AzureOpenAI, Bedrock, Vertex}

// vendorAPIs are the interfaces of the vendors, by their provider ids. The first is the default.
var vendorAPIs = map[string][]API{"openai": {OpenAIChat, OpenAIResponses}, "anthropic": {Anthropic}, "gemini": {Gemini}}

// Server is how a provider's server is called.
type Server struct {
	// API is the server's interface; empty is the vendor's, else OpenAIChat.
	API API `json:"api"`
	// BaseURL is the server's address; empty is the vendor's.
	BaseURL string `json:"baseUrl"`
	// Key names the key; nil uses the variables of the provider.
	Key *Reference `json:"key"`
	// Headers, SecretHeaders and Query are added to every request.
	Headers       map[string]string    `json:"headers"`
	SecretHeaders map[string]Reference `json:"secretHeaders"`
	Query         map[string]string    `json:"query"`
	// Body are members that are added to every request.
	Body map[string]json.RawMessage `json:"body"`
	// ReasoningEffort is the effort of reasoning models; empty is the model's own.
	ReasoningEffort string `json:"reasoningEffort"`
	// PromptCaching is how long the vendor caches prompts; empty leaves that to the vendor.
	PromptCaching string `json:"promptCaching"`
	// AWS is the account of Bedrock, Google the project of Vertex.
	AWS    *AWS    `json:"aws"`
	Google *Google `json:"google"`
}

// AWS is an account of Amazon's cloud. Without an access key, AWS's default chain has the credentials.
type AWS struct {
	// Region and Profile are those of the environment if they are empty.
	Region  string `json:"region"`
	Profile string `json:"profile"`
	// AccessKeyID and SecretAccessKey are both set, or both nil. SessionToken belongs to temporary ones.
	AccessKeyID     *Reference `json:"accessKeyId"`
	SecretAccessKey *Reference `json:"secretAccessKey"`
	SessionToken    *Reference `json:"sessionToken"`
}

// Google is a project of Google's cloud. Empty members are those of the environment or of the
// credentials; the location is then global.
type Google struct {
	Project  string `json:"project"`
	Location string `json:"location"`
}

// Reference names where a secret is: a file never holds the secret itself.
type Reference struct {
	// Env is an environment variable, File the path of a file. Exactly one is set.
	Env  string `json:"env"`
	File string `json:"file"`
}

// Describes reports whether the settings say which server is called, and not only how. Such a
// provider needs no flag.
func (s Server) Describes() bool { return s.API != "" || s.BaseURL != "" || s.Key != nil }

// APIOf returns the interface of a provider's server.
func (s Server) APIOf(id string) API {
	switch {
	case s.API != "":
		return s.API
	case vendorAPIs[id] != nil:
		return vendorAPIs[id][0]
	default:
		return OpenAIChat
	}
}

var (
	// headerName is a token of HTTP.
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	// variableName is the name of an environment variable.
	variableName = regexp.MustCompile("^[A-Za-z_][A-Za-z0-9_]*$")
	// hostHeaders are set by the host or its HTTP client.
	hostHeaders = []string{
		"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Accept", "Accept-Encoding",
		"Idempotency-Key", "Traceparent",
	}
	// keyHeaders carry the key. A tenant's own key must not be replaced.
	keyHeaders = []string{"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key"}
	// hostMembers are the members of a request that the host decides for each call.
	hostMembers = []string{
		"model", "messages", "contents", "system", "systemInstruction", "stream", "stream_options", "tools", "tool_choice",
		"toolConfig", "response_format", "n", "input", "instructions", "previous_response_id", "conversation", "background",
		"anthropic_version",
	}
	// efforts are the values of ReasoningEffort.
	efforts = map[API][]string{
		OpenAIChat:      {"none", "minimal", "low", "medium", "high", "xhigh", "max"},
		OpenAIResponses: {"none", "minimal", "low", "medium", "high", "xhigh", "max"},
		AzureOpenAI:     {"none", "minimal", "low", "medium", "high", "xhigh", "max"},
		Anthropic:       {"low", "medium", "high", "xhigh", "max"},
		Bedrock:         {"low", "medium", "high", "xhigh", "max"},
	}
	cacheTimes = []string{"5m", "1h"}
)

// check reports what is wrong to f.
func (s Server) check(f *settings.File, at, id string) {
	if id == anyProvider {
		if s.Describes() || len(s.Headers)+len(s.SecretHeaders)+len(s.Query)+len(s.Body) > 0 || s.ReasoningEffort+s.PromptCaching != "" {
			f.Wrong(at, "a server is described in the entry of its provider; here are limits only")
		}
		return
	}
	s.checkAPI(f, at, id)
	s.checkCloud(f, at, s.APIOf(id))
	if s.Key != nil {
		s.Key.check(f, at+"/key")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		checkHeader(f, settings.Path(at+"/headers", name), name)
		if other := sameHeader(s.Headers, name); other != "" {
			f.Wrong(settings.Path(at+"/headers", name), "is the header %s, which is there, too; keep one of the two", other)
		}
		if strings.ContainsFunc(s.Headers[name], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			f.Wrong(settings.Path(at+"/headers", name), "has a line end or another control character")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.SecretHeaders)) {
		path := settings.Path(at+"/secretHeaders", name)
		checkHeader(f, path, name)
		s.SecretHeaders[name].check(f, path)
		if other := sameHeader(s.SecretHeaders, name); other != "" {
			f.Wrong(path, "is the header %s, which is there, too; keep one of the two", other)
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(s.Headers)), func(other string) bool { return strings.EqualFold(other, name) }) {
			f.Wrong(path, "is in headers, too; keep one of the two")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Body)) {
		if slices.Contains(hostMembers, name) {
			f.Wrong(settings.Path(at+"/body", name), "the host sets it for each call; it cannot be replaced")
		}
	}
}

// checkAPI checks the interface and what depends on it.
func (s Server) checkAPI(f *settings.File, at, id string) {
	api := s.APIOf(id)
	vendor := vendorAPIs[id]
	switch {
	case !slices.Contains(apis, api):
		f.Wrong(at+"/api", "%q: %swant one of %s; for another interface, use a gateway that has one of these", api, meantAPI(string(api)), listAPIs())
		return
	case vendor != nil && !slices.Contains(vendor, api):
		f.Wrong(at+"/api", "%q: the provider %s has the interface %s; give this server another id", api, id, vendor[0])
	case api == AzureOpenAI && s.Query["api-version"] == "":
		f.Wrong(at+"/query", "missing: api-version, such as 2024-10-21")
	case api == AzureOpenAI && !azureVersion.MatchString(s.Query["api-version"]):
		f.Wrong(at+"/query/api-version", "want a date such as 2024-10-21 or 2024-10-21-preview, or v1, latest or preview")
	}
	if e := s.ReasoningEffort; e != "" && !slices.Contains(efforts[api], e) {
		if efforts[api] == nil {
			f.Wrong(at+"/reasoningEffort", "the interface %s has none; set generationConfig.thinkingConfig in body", api)
		} else {
			f.Wrong(at+"/reasoningEffort", "%q: want one of %s", e, strings.Join(efforts[api], ", "))
		}
	}
	if c := s.PromptCaching; c != "" && api != Anthropic {
		f.Wrong(at+"/promptCaching", "only the interface anthropic has it; others cache prompts by themselves")
	} else if c != "" && !slices.Contains(cacheTimes, c) {
		f.Wrong(at+"/promptCaching", "%q: want 5m or 1h, the time for which the vendor keeps a prompt", c)
	}
}

// checkCloud checks the account or project, which only its interface has.
func (s Server) checkCloud(f *settings.File, at string, api API) {
	if s.Google != nil && api != Vertex {
		f.Wrong(at+"/google", "only the interface vertex has it")
	}
	if s.AWS == nil {
		return
	}
	if api != Bedrock {
		f.Wrong(at+"/aws", "only the interface bedrock has it")
	}
	for _, ref := range []struct {
		name string
		*Reference
	}{{"accessKeyId", s.AWS.AccessKeyID}, {"secretAccessKey", s.AWS.SecretAccessKey}, {"sessionToken", s.AWS.SessionToken}} {
		if ref.Reference != nil {
			ref.check(f, at+"/aws/"+ref.name)
		}
	}
	signs := s.AWS.AccessKeyID != nil
	switch {
	case signs != (s.AWS.SecretAccessKey != nil), s.AWS.SessionToken != nil && !signs:
		f.Wrong(at+"/aws", "want accessKeyId and secretAccessKey together")
	case signs && s.AWS.Profile != "":
		f.Wrong(at+"/aws/profile", "has credentials, and so does accessKeyId; keep one of the two")
	case (signs || s.AWS.Profile != "") && s.Key != nil:
		f.Wrong(at+"/key", "has credentials, and so does aws; keep one of the two")
	}
}

// azureVersion is the form of versions of Azure OpenAI.
var azureVersion = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2}(-[a-z]+)?|v1|latest|preview)$`)

// commonAPIs are the interfaces of products and vendors, which authors take for names of interfaces.
var commonAPIs = map[string]API{
	"openai": OpenAIChat, "ollama": OpenAIChat, "vllm": OpenAIChat, "lmstudio": OpenAIChat, "groq": OpenAIChat, "mistral": OpenAIChat, "chat": OpenAIChat,
	"responses": OpenAIResponses, "claude": Anthropic, "google": Gemini, "azure": AzureOpenAI, "aws": Bedrock,
}

// meantAPI is the beginning of a message with a suggestion; empty if no interface is close.
func meantAPI(name string) string {
	meant := string(commonAPIs[strings.ToLower(name)])
	if near := suggest.Names(name, apiNames(), 1); meant == "" && len(near) > 0 {
		meant = near[0]
	}
	if meant == "" {
		return ""
	}
	return "did you mean " + meant + "? "
}

func listAPIs() string {
	return strings.Join(apiNames(), ", ")
}

func apiNames() []string {
	out := make([]string, len(apis))
	for i, a := range apis {
		out[i] = string(a)
	}
	return out
}

// sameHeader returns another spelling of a header before this one: names of headers have no case.
func sameHeader[V any](all map[string]V, name string) string {
	for _, other := range slices.Sorted(maps.Keys(all)) {
		if other < name && strings.EqualFold(other, name) {
			return other
		}
	}
	return ""
}

func checkHeader(f *settings.File, at, name string) {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case !headerName.MatchString(name):
		f.Wrong(at, "no name of a header")
	case slices.Contains(keyHeaders, canonical):
		f.Wrong(at, "carries the key of a call; name the key with the member key")
	case slices.Contains(hostHeaders, canonical):
		f.Wrong(at, "the host sets it for each call; it cannot be replaced")
	}
}

// check reports a reference that does not name one place.
func (r Reference) check(f *settings.File, at string) {
	if (r.Env == "") == (r.File == "") {
		f.Wrong(at, `want {"env": NAME} or {"file": PATH}, where the secret is`)
	} else if r.Env != "" && !variableName.MatchString(r.Env) { // not shown: it may be the secret
		f.Wrong(at+"/env", "want the name of an environment variable: letters, digits and _, such as MY_KEY; not the secret itself")
	}
}
