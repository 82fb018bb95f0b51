// Package bedrock calls Claude models on Amazon Bedrock with Anthropic's official SDK, which signs the
// requests and decodes Amazon's streams.
package bedrock

import (
	"context"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/bedrock"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/shared"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// DefaultID is the provider's default id.
const DefaultID = "bedrock"

// Config describes an account. The server's APIKey is a Bedrock API key. Without a key, the access key
// signs the requests; without that, the credentials of AWS's default chain.
type Config struct {
	Server outbound.Server
	// Region is the region of the models; empty uses that of the environment or the profile.
	Region string
	// Profile is a profile of AWS's shared files; empty uses the default.
	Profile string
	// AccessKeyID, SecretAccessKey and SessionToken are an access key; empty uses the chain.
	AccessKeyID, SecretAccessKey, SessionToken provider.Secret
}

// envKey is the variable of a Bedrock API key in AWS's tools. The SDK prefers it to all other
// credentials.
const envKey = "AWS_BEARER_TOKEN_BEDROCK"

var validRegion = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]{1,2}$`)

// New validates the configuration and connects to no server.
func New(cfg Config) (*anthropic.Provider, error) {
	cloud, err := cfg.load()
	if err != nil {
		return nil, err
	}
	rules := rulesOf(cloud.Region)
	server := cfg.Server.WithDefaults(rules)
	if err := server.Validate(rules); err != nil {
		return nil, err
	}
	// The token is a marker: the option of the key replaces it in each request.
	withKey := aws.Config{Region: cloud.Region, BearerAuthTokenProvider: bedrock.NewStaticBearerTokenProvider(provider.Redacted)}
	return anthropic.NewOn(anthropic.Platform{
		Options:    []option.RequestOption{bedrock.WithConfig(cloud)},
		KeyOptions: []option.RequestOption{bedrock.WithConfig(withKey)},
		Key:        bearer,
		ErrorType:  errorType,
	}, server), nil
}

// Validate returns all problems that do not depend on the environment.
func (c Config) Validate() error {
	var more []outbound.Finding
	if c.Region != "" && !validRegion.MatchString(c.Region) {
		more = append(more, outbound.Finding{Field: fieldRegion, Value: c.Region, Remedy: remedyRegion})
	}
	rules := rulesOf(exampleRegion)
	return c.Server.WithDefaults(rules).Validate(rules, more...)
}

const (
	fieldRegion   = "aws.region"
	exampleRegion = "eu-central-1"
	remedyRegion  = "want a region such as " + exampleRegion
)

// rulesOf are the rules of the servers of a region.
func rulesOf(region string) outbound.Rules {
	return outbound.Rules{
		ID:      DefaultID,
		BaseURL: "https://bedrock-runtime." + region + ".amazonaws.com",
		Form:    "http(s)://host[:port]",
		Example: "https://bedrock-runtime." + exampleRegion + ".amazonaws.com",
		NoPath:  true,
	}
}

// load finds region and credentials.
func (c Config) load() (aws.Config, error) {
	fail := func(field, value, remedy string) (aws.Config, error) {
		return aws.Config{}, &outbound.InvalidError{ID: c.Server.ID, Findings: []outbound.Finding{{Field: field, Value: value, Remedy: remedy}}}
	}
	var load []func(*config.LoadOptions) error
	if c.Region != "" {
		load = append(load, config.WithRegion(c.Region))
	}
	if c.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(c.Profile))
	}
	cloud, err := config.LoadDefaultConfig(context.Background(), load...)
	if err != nil {
		return fail("aws", "", "AWS's shared files cannot be used: "+err.Error())
	}
	switch {
	case cloud.Region == "":
		return fail(fieldRegion, "", "missing; set it, or AWS_REGION")
	case !validRegion.MatchString(cloud.Region):
		return fail(fieldRegion, cloud.Region, remedyRegion)
	case (c.AccessKeyID != "" || c.Profile != "") && os.Getenv(envKey) != "":
		return fail("aws", "", envKey+" is set, and would be used instead of these credentials; unset it")
	}
	if c.AccessKeyID != "" {
		cloud.Credentials = credentials.NewStaticCredentialsProvider(string(c.AccessKeyID), string(c.SecretAccessKey), string(c.SessionToken))
	}
	if cloud.Credentials != nil {
		cloud.Credentials = named{cloud.Credentials}
	}
	return cloud, nil
}

// named is a source of credentials whose errors a run can record.
type named struct{ aws.CredentialsProvider }

// Retrieve returns the credentials, or a *provider.Error without the text of the source: it can name
// files and addresses of the host.
func (n named) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := n.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		err = &provider.Error{
			Code:      provider.CodeCredentialRequired,
			Message:   "AWS's default chain has no credentials; set key or aws in --provider-settings, or AWS's variables",
			Retryable: errors.Is(err, context.DeadlineExceeded),
			Cause:     err,
		}
	}
	return c, err
}

// bearer returns the option that sends a Bedrock API key. It comes after the platform's own.
func bearer(key provider.Secret) option.RequestOption {
	return option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		r.Header.Set("Authorization", "Bearer "+string(key))
		return next(r)
	})
}

// types are Anthropic's types of Bedrock's errors, whose names are in lower case here.
var types = map[string]shared.ErrorType{
	"throttlingexception":           shared.ErrorTypeRateLimitError,
	"toomanyrequestsexception":      shared.ErrorTypeRateLimitError,
	"modelnotreadyexception":        shared.ErrorTypeOverloadedError,
	"serviceunavailableexception":   shared.ErrorTypeOverloadedError,
	"servicequotaexceededexception": shared.ErrorTypeBillingError,
	"modeltimeoutexception":         shared.ErrorTypeAPIError,
	"modelstreamerrorexception":     shared.ErrorTypeAPIError,
	"modelerrorexception":           shared.ErrorTypeAPIError,
	"internalserverexception":       shared.ErrorTypeAPIError,
	"accessdeniedexception":         shared.ErrorTypePermissionError,
	"unrecognizedclientexception":   shared.ErrorTypeAuthenticationError,
	"invalidsignatureexception":     shared.ErrorTypeAuthenticationError,
	"signaturedoesnotmatch":         shared.ErrorTypeAuthenticationError,
	"incompletesignatureexception":  shared.ErrorTypeAuthenticationError,
	"missingauthenticationtoken":    shared.ErrorTypeAuthenticationError,
	"expiredtokenexception":         shared.ErrorTypeAuthenticationError,
	"resourcenotfoundexception":     shared.ErrorTypeNotFoundError,
	"validationexception":           shared.ErrorTypeInvalidRequestError,
}

// errorType reads the name of an error: from the header of a response, or from its document or event.
func errorType(e *outbound.ServerError) shared.ErrorType {
	for _, name := range []string{e.Header.Get("X-Amzn-Errortype"), e.Body.Kind, e.Body.Code} {
		name, _, _ = strings.Cut(name, ":")
		if at := strings.LastIndexByte(name, '#'); at >= 0 { // a namespace
			name = name[at+1:]
		}
		if t, ok := types[strings.ToLower(name)]; ok {
			return t
		}
	}
	return ""
}
