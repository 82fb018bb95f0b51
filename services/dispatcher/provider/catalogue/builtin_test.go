package catalogue_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
)

// vendors are the providers whose figures come from outside.
var vendors = []string{"openai", "anthropic", "gemini"}

func day(t *testing.T, text string) time.Time {
	t.Helper()
	d, err := time.Parse(time.DateOnly, text)
	require.NoError(t, err)
	return d
}

func TestBuiltin_SaysWhereItsFiguresComeFrom(t *testing.T) {
	t.Parallel()
	c := catalogue.Builtin()
	day(t, c.AsOf())
	for _, id := range vendors {
		p, ok := c.Providers()[id]
		require.True(t, ok, id)
		require.NotEmpty(t, p.Name, id)
		require.NotEmpty(t, p.Source, id)
		for _, s := range p.Source {
			u, err := url.Parse(s)
			require.NoError(t, err)
			require.Equal(t, "https", u.Scheme)
		}
		require.False(t, day(t, p.Checked).After(day(t, c.AsOf())), "%s was checked after the catalogue's own day", id)
		require.True(t, slices.ContainsFunc(c.Entries(), func(e catalogue.Entry) bool { return e.Provider == id }), id)
	}
}

func TestBuiltin_EveryEntryIsPlausible(t *testing.T) {
	t.Parallel()
	c := catalogue.Builtin()
	owners := map[string]string{}
	for _, e := range c.Entries() {
		t.Run(e.Name(), func(t *testing.T) {
			_, listed := c.Providers()[e.Provider]
			require.True(t, listed, "without the provider, rules would speak for its other models")
			for _, id := range slices.Concat(e.Capabilities, e.Unsure) {
				require.Contains(t, catalogue.Capabilities(), id)
			}
			for _, n := range slices.Concat([]string{e.Model}, e.Aliases, e.Snapshots) {
				owner, taken := owners[e.Provider+"/"+n]
				require.False(t, taken, "%s is a name of %s too", n, owner)
				owners[e.Provider+"/"+n] = e.Name()
				got, ok := c.Lookup(e.Provider, n)
				require.True(t, ok)
				require.Equal(t, e, got)
			}
			has := func(id modelgate.Capability) bool { return slices.Contains(e.Capabilities, id) }
			require.Equal(t, has(modelgate.StructuredOutput), e.StructuredOutput == catalogue.StructuredFormat || e.StructuredOutput == catalogue.StructuredTool)
			if slices.Contains(vendors, e.Provider) {
				require.Positive(t, e.ContextTokens, "the vendor publishes the size of the window")
				require.Equal(t, e.ContextTokens >= catalogue.LongContext, has(modelgate.LongContext))
				require.LessOrEqual(t, e.OutputTokens, e.ContextTokens)
			}
			if e.Retires != "" {
				require.True(t, day(t, e.Retires).After(day(t, c.AsOf())), "the model was gone on the catalogue's own day")
			}
			plausiblePrices(t, c, e)
		})
	}
}

// plausiblePrices compares prices with each other, which finds a misplaced decimal point.
func plausiblePrices(t *testing.T, c *catalogue.Catalogue, e catalogue.Entry) {
	t.Helper()
	if !slices.Contains(vendors, e.Provider) {
		return
	}
	for p := e.Prices; p != nil; p = p.Then {
		require.NotNil(t, p.Input)
		require.NotNil(t, p.Output)
		require.Positive(t, *p.Input)
		require.GreaterOrEqual(t, *p.Output, *p.Input, "answers cost more than questions")
		require.LessOrEqual(t, *p.Output, 20*(*p.Input))
		if p.CacheRead != nil {
			require.Less(t, *p.CacheRead, *p.Input, "reading the cache saves money")
		}
		if p.CacheWrite != nil {
			require.GreaterOrEqual(t, *p.CacheWrite, *p.Input, "writing the cache costs more than plain input")
			require.LessOrEqual(t, *p.CacheWrite, 2*(*p.Input))
		}
		if p.Long != nil {
			require.Less(t, p.Long.Over, e.ContextTokens)
			for _, pair := range [][2]*catalogue.Rate{
				{p.Input, p.Long.Input},
				{p.Output, p.Long.Output},
				{p.CacheRead, p.Long.CacheRead},
				{p.CacheWrite, p.Long.CacheWrite},
			} {
				if pair[1] != nil {
					require.NotNil(t, pair[0])
					require.Greater(t, *pair[1], *pair[0])
					require.LessOrEqual(t, *pair[1], 5*(*pair[0]))
				}
			}
		}
		if p.Until != "" {
			require.False(t, day(t, p.Until).Before(day(t, c.AsOf())), "the prices had ended on the catalogue's own day")
		}
	}
}

// The catalogue has an entry for each provider (OpenWOP envelope contract §16.3). The sample model
// supports structured output, including unions; a script supports all base capabilities.
func TestBuiltin_SpeaksForTheProvidersThatComeWithTheHost(t *testing.T) {
	t.Parallel()
	ids := append(catalogue.Capabilities(), "x-host-acme-dance")
	for _, id := range ids {
		has, known := catalogue.Builtin().Has(modelgate.Model{Provider: sample.ID, Model: sample.Model}, id)
		require.True(t, known, id)
		require.Equal(t, id == modelgate.StructuredOutput || id == modelgate.DiscriminatorEnum, has, id)

		has, known = catalogue.Builtin().Has(modelgate.Model{Provider: mock.ID, Model: "anything"}, id)
		require.True(t, known, id)
		require.Equal(t, slices.Contains(modelgate.Base(), id), has, id)
	}
	_, ok := catalogue.Builtin().Lookup(sample.ID, "llama-3.1-8b-instruct")
	require.False(t, ok, "the stand-in has one model, and no rule speaks for others")
}

func TestBuiltin_RulesSpeakForModelsThatPeopleServeThemselves(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]struct{ has, lacks, open string }{
		"openai/gpt-oss-120b": {
			has:   "reasoning function-calling",
			lacks: "vision-input",
			open:  "structured-output long-context",
		},
		"meta-llama/Llama-3.1-8B-Instruct": {
			has:   "function-calling",
			lacks: "vision-input audio-output",
			open:  "structured-output reasoning",
		},
		"llama3.3:70b":                           {has: "function-calling", lacks: "image-output", open: "long-context"},
		"Llama-3.2-11B-Vision-Instruct":          {has: "vision-input", lacks: "audio-input", open: "function-calling"},
		"meta-llama/Llama-Guard-4-12B":           {lacks: "audio-output", open: "function-calling vision-input"},
		"Qwen/Qwen3-8B":                          {has: "reasoning function-calling", open: "vision-input"},
		"Qwen/Qwen3-235B-A22B-Instruct-2507":     {has: "function-calling", lacks: "reasoning"},
		"Qwen/Qwen3-Embedding-8B":                {lacks: "reasoning function-calling"},
		"Qwen/Qwen2.5-VL-7B-Instruct":            {has: "vision-input", open: "function-calling"},
		"qwen2.5-math-7b-instruct":               {lacks: "function-calling"},
		"mistralai/Mistral-Small-3.2-24B":        {has: "function-calling vision-input"},
		"google/gemma-3-27b-it":                  {has: "vision-input", lacks: "audio-input"},
		"gemma3:1b":                              {lacks: "image-output", open: "vision-input"},
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-7": {has: "reasoning", lacks: "vision-input", open: "function-calling"},
		"microsoft/phi-4":                        {lacks: "audio-output", open: "reasoning"},
		"Phi-4-mini-reasoning":                   {has: "reasoning"},
	} {
		m := modelgate.Model{Provider: "lab", Model: model}
		for list, want := range map[string][2]bool{
			want.has:   {true, true},
			want.lacks: {false, true},
			want.open:  {false, false},
		} {
			for _, id := range strings.Fields(list) {
				has, known := catalogue.Builtin().Has(m, id)
				require.Equal(t, want, [2]bool{has, known}, "%s: %s", model, id)
			}
		}
	}
}

// No rule promises structured output or a context size for a self-hosted server.
func TestBuiltin_RulesPromiseOnlyWhatFollowsFromTheModel(t *testing.T) {
	t.Parallel()
	for _, r := range catalogue.Builtin().Rules() {
		if r.Provider == mock.ID {
			continue
		}
		require.NotEqual(t, "*", r.Match)
		require.Empty(t, r.StructuredOutput, r.Match)
		require.Zero(t, r.ContextTokens, r.Match)
		require.Nil(t, r.Prices, r.Match)
		for _, id := range []modelgate.Capability{
			modelgate.StructuredOutput, modelgate.DiscriminatorEnum, modelgate.LongContext,
		} {
			require.NotContains(t, r.Capabilities, id, r.Match)
		}
	}
}

// The vendor's model names contain what the models generate.
func TestBuiltin_KnowsWhichModelsPaintAndSpeak(t *testing.T) {
	t.Parallel()
	for model, id := range map[string]modelgate.Capability{
		"gemini-2.5-flash-image":     modelgate.ImageOutput,
		"gemini-3-pro-image-preview": modelgate.ImageOutput,
		"gemini-2.5-pro-preview-tts": modelgate.AudioOutput,
	} {
		has, known := catalogue.Builtin().Has(modelgate.Model{Provider: "gemini", Model: model}, id)
		require.True(t, has && known, model)
	}
	_, ok := catalogue.Builtin().Lookup("openai", "gpt-image-9")
	require.False(t, ok)
}

func TestBuiltin_RulesDoNotSpeakForTheVendors(t *testing.T) {
	t.Parallel()
	for _, id := range vendors {
		_, ok := catalogue.Builtin().Lookup(id, "gpt-oss-120b")
		require.False(t, ok, id)
	}
	_, ok := catalogue.Builtin().Lookup("lab", "homegrown-7b")
	require.False(t, ok)
	has, known := catalogue.Builtin().Has(modelgate.Model{Provider: "lab", Model: "homegrown-7b"}, modelgate.Reasoning)
	require.False(t, has)
	require.False(t, known)
}
