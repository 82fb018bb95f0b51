package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/host/tools"
	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
	"waybill.dev/waybill/services/dispatcher/provider/bedrock"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
	"waybill.dev/waybill/services/dispatcher/provider/gemini"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
	"waybill.dev/waybill/services/dispatcher/provider/vertex"
)

// vendor is a provider with its own API and name.
type vendor struct {
	id string
	// keyEnv is the key's variable in the vendor's own tools.
	keyEnv string
	// model is the default model.
	model string
}

var vendors = []vendor{
	{"openai", "OPENAI_API_KEY", "gpt-6.1-terra"},
	{anthropic.DefaultID, "ANTHROPIC_API_KEY", "claude-sonnet-5-5"},
	{gemini.DefaultID, "GEMINI_API_KEY", "gemini-3.8-flash"},
}

func vendorOf(id string) *vendor {
	for i := range vendors {
		if vendors[i].id == id {
			return &vendors[i]
		}
	}
	return nil
}

// configured is a provider of the flags, the environment or the settings.
type configured struct {
	id, url string
	vendor  *vendor // nil means a server of the operator
	key     provider.Secret
	// keyName returns the variable of the key, also if it is unset.
	keyName  string
	settings limit.Server
	extras   outbound.Extras
	// aws is the access key of the settings.
	aws struct{ id, secret, token provider.Secret }
}

// server is the configuration of its adapter.
func (g configured) server() outbound.Server {
	return outbound.Server{ID: g.id, BaseURL: g.url, APIKey: g.key, KeyName: g.keyName, Extras: g.extras}
}

func (g configured) open() (provider.Provider, error) {
	server := g.server()
	api := g.settings.APIOf(g.id)
	switch api {
	case limit.Anthropic:
		return anthropic.New(anthropic.Config(server))
	case limit.Gemini:
		return gemini.New(gemini.Config(server))
	case limit.Bedrock, limit.Vertex:
		return g.openCloud(server)
	default:
		return compat.New(g.compatible())
	}
}

// compatible is the configuration of a server with OpenAI's interface.
func (g configured) compatible() compat.Config {
	api := g.settings.APIOf(g.id)
	c := compat.Config{
		ID:              g.id,
		BaseURL:         g.url,
		APIKey:          g.key,
		KeyName:         g.keyName,
		Extras:          g.extras,
		ReasoningEffort: g.settings.ReasoningEffort,
	}
	c.Responses = api == limit.OpenAIResponses
	switch {
	case api == limit.AzureOpenAI:
		c.Dialect = compat.DialectAzure
	case g.vendor != nil, c.Responses && g.url == "":
		c.Dialect = compat.DialectOpenAI
	}
	return c
}

// openCloud opens a provider of models on a cloud, whose account or project is in the settings.
func (g configured) openCloud(server outbound.Server) (provider.Provider, error) {
	if g.settings.APIOf(g.id) == limit.Vertex {
		return vertex.New(g.vertex(server))
	}
	return bedrock.New(g.bedrock(server))
}

func (g configured) vertex(server outbound.Server) vertex.Config {
	c := vertex.Config{Server: server, Credentials: g.key}
	if in := g.settings.Google; in != nil {
		c.Project, c.Location = in.Project, in.Location
	}
	return c
}

func (g configured) bedrock(server outbound.Server) bedrock.Config {
	c := bedrock.Config{Server: server, AccessKeyID: g.aws.id, SecretAccessKey: g.aws.secret, SessionToken: g.aws.token}
	if in := g.settings.AWS; in != nil {
		c.Region, c.Profile = in.Region, in.Profile
	}
	return c
}

// configured lists the providers of the flags and of the settings, and the vendors with a key.
func (o *Options) configured() ([]configured, error) {
	var (
		out   []configured
		errs  []error
		wrong strictjson.Problems // in the settings
	)
	doc, all, _ := o.parseSettings(nil) // Validate and CheckKeys report the error
	add := func(id, url string) {
		g := configured{id: id, url: url, vendor: vendorOf(id), settings: all.For(id).Server}
		if g.url != "" && g.settings.BaseURL != "" {
			wrong = append(wrong, strictjson.Problem{
				Path:    settings.Path("/providers", id) + "/baseUrl",
				Message: "--provider gives " + id + " an address, too; keep one of the two",
			})
		}
		if g.url == "" {
			g.url = g.settings.BaseURL
		}
		if !o.ValuesOnly {
			bad, err := g.readSecrets()
			if err != nil {
				errs = append(errs, err)
			}
			wrong = append(wrong, bad...)
		}
		out = append(out, g)
	}
	has := func(id string) bool {
		return slices.ContainsFunc(out, func(g configured) bool { return g.id == id })
	}
	for _, f := range o.ProviderFlags {
		id, url, isServer := strings.Cut(f, "=")
		if has(id) {
			errs = append(errs, fmt.Errorf("--provider %s: is there twice; give each provider its own id", id))
			continue
		}
		add(id, url)
		described := o.ValuesOnly && o.SettingsFile != ""
		if g := out[len(out)-1]; !isServer && g.vendor == nil && !g.settings.Describes() && !described {
			errs = append(errs, fmt.Errorf("--provider %q: want ID=URL, or one of openai, anthropic and gemini%s", f, meant(id, VendorIDs())))
		} else if problem := o.missingKey(g); problem != "" {
			errs = append(errs, fmt.Errorf("--provider %s: %s", id, problem))
		}
	}
	for _, id := range all.Servers() {
		if !has(id) {
			add(id, "")
			g := out[len(out)-1]
			if g.lacksAddress() {
				wrong = append(wrong, strictjson.Problem{Path: settings.Path("/providers", id) + "/baseUrl", Message: missingAddress})
			}
			if problem := o.missingKey(g); problem != "" {
				wrong = append(wrong, strictjson.Problem{Path: settings.Path("/providers", id), Message: problem})
			}
		}
	}
	for _, v := range vendors {
		if has(v.id) {
			continue
		}
		add(v.id, "")
		if out[len(out)-1].key == "" {
			out = out[:len(out)-1]
		}
	}
	if len(wrong) > 0 {
		errs = append(errs, fmt.Errorf("--provider-settings %s:\n%w", o.SettingsFile, wrong.In(doc)))
	}
	return out, errors.Join(errs...)
}

// missingKey returns the problem of a vendor without a key; empty otherwise.
func (o *Options) missingKey(g configured) string {
	if g.vendor == nil || g.url != "" || g.key != "" || o.CredentialsDir != "" || o.SecretsOnly || o.ValuesOnly || g.settings.Key != nil {
		return ""
	}
	return fmt.Sprintf("there is no key; set %s, %s or %s, or let tenants bring theirs with --credentials",
		g.vendor.keyEnv, g.keyName, g.keyName+"_FILE")
}

// readSecrets reads the key and the secret headers, and sets the additions to each request. wrong are the
// references of the settings that have no secret, err is what is wrong with the variables of the key.
func (g *configured) readSecrets() (wrong strictjson.Problems, err error) {
	fail := func(member string, err error) {
		if err != nil {
			wrong = append(wrong, strictjson.Problem{Path: settings.Path("/providers", g.id) + member, Message: err.Error()})
		}
	}
	if ref := g.settings.Key; ref != nil {
		var bad error
		g.key, g.keyName, bad = readReference(*ref)
		fail("/key", bad)
	} else {
		g.key, g.keyName, err = keyOf(g.id, g.vendor)
	}
	x := outbound.Extras{Headers: map[string]provider.Secret{}, Query: g.settings.Query, Body: maps.Clone(g.settings.Body)}
	for name, value := range g.settings.Headers {
		x.Headers[name] = provider.Secret(value)
	}
	for _, name := range slices.Sorted(maps.Keys(g.settings.SecretHeaders)) {
		value, _, bad := readReference(g.settings.SecretHeaders[name])
		fail(settings.Path("/secretHeaders", name), bad)
		x.Headers[name] = value
	}
	if x.Body == nil {
		x.Body = map[string]json.RawMessage{}
	}
	api := g.settings.APIOf(g.id)
	if e := g.settings.ReasoningEffort; e != "" && (api == limit.Anthropic || api == limit.Bedrock) {
		x.Body["output_config"] = mergeConfig(x.Body["output_config"], "effort", e)
	}
	if ttl := g.settings.PromptCaching; ttl != "" {
		x.Body["cache_control"] = json.RawMessage(fmt.Sprintf(`{"type":"ephemeral","ttl":%q}`, ttl))
	}
	g.extras = x
	g.readAccessKey(fail)
	return wrong, err
}

// readAccessKey reads AWS's access key.
func (g *configured) readAccessKey(fail func(member string, err error)) {
	in := g.settings.AWS
	if in == nil {
		return
	}
	for _, part := range []struct {
		into *provider.Secret
		name string
		from *limit.Reference
	}{
		{&g.aws.id, "accessKeyId", in.AccessKeyID},
		{&g.aws.secret, "secretAccessKey", in.SecretAccessKey},
		{&g.aws.token, "sessionToken", in.SessionToken},
	} {
		if part.from == nil {
			continue
		}
		value, _, err := readReference(*part.from)
		fail("/aws/"+part.name, err)
		*part.into = value
	}
}

// mergeConfig sets a member of an object, unless the operator's object has it.
func mergeConfig(object json.RawMessage, name, value string) json.RawMessage {
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(object, &members) // anything else is replaced
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	if _, own := members[name]; !own {
		members[name] = json.RawMessage(fmt.Sprintf("%q", value))
	}
	out, _ := json.Marshal(members) // raw members always render
	return out
}

// readReference reads a secret from the place that the settings name.
func readReference(r limit.Reference) (secret provider.Secret, name string, err error) {
	text := os.Getenv(r.Env)
	if name = r.Env; r.File != "" {
		name = r.File
		b, err := os.ReadFile(r.File)
		if err != nil {
			return "", name, fmt.Errorf("%s: %w", r.File, hostfile.WithoutPath(err))
		}
		text = string(b)
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", name, fmt.Errorf("%s is empty or not set", name)
	}
	return provider.Secret(text), name, nil
}

// keyOf reads a provider's key: from a variable, from a file such as a mounted secret, or from the
// variable of the vendor's own tools.
func keyOf(id string, v *vendor) (key provider.Secret, name string, err error) {
	name = "WAYBILL_PROVIDER_" + tools.EnvID(id) + "_KEY"
	fromEnv, file := os.Getenv(name), os.Getenv(name+"_FILE")
	switch {
	case fromEnv != "" && file != "":
		return "", name, fmt.Errorf("%s and %s_FILE are both set; keep one of the two", name, name)
	case fromEnv != "":
		return provider.Secret(fromEnv), name, nil
	case file != "":
		b, err := os.ReadFile(file) //nolint:gosec // G304: the operator names the file
		if err != nil || strings.TrimSpace(string(b)) == "" {
			return "", name + "_FILE", fmt.Errorf("%s_FILE: want the path of a file with the key in it", name)
		}
		return provider.Secret(strings.TrimSpace(string(b))), name + "_FILE", nil
	case v != nil && os.Getenv(v.keyEnv) != "":
		return provider.Secret(os.Getenv(v.keyEnv)), v.keyEnv, nil
	}
	return "", name, nil
}

// CheckKeys returns the errors in the keys of the providers.
func (o *Options) CheckKeys() error {
	if _, _, err := o.parseSettings(nil); err != nil { // without them, servers are unknown
		return err
	}
	all, err := o.configured()
	return errors.Join(append(o.checkServers(all), err)...)
}
