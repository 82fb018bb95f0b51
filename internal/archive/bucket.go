package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// bucket is a target in an S3 bucket. A PUT of S3 is durable when it is answered, and replaces an
// object as a whole.
type bucket struct {
	client       *s3.Client
	name, prefix string
}

// requestTimeout limits a request with its retries.
const requestTimeout = 20 * time.Second

// defaultRegion is used if no setting names one. Servers other than AWS need none.
const defaultRegion = "us-east-1"

func openBucket(ctx context.Context, target string) (Target, error) {
	name, prefix, err := bucketOf(target)
	if err != nil {
		return nil, err
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("AWS settings: %w", err)
	}
	if cfg.Region == "" {
		cfg.Region = defaultRegion
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.Logger = logging.Nop{}
		o.DisableLogOutputChecksumValidationSkipped = true
		// Servers at an address of their own seldom have a name for each bucket.
		o.UsePathStyle = o.BaseEndpoint != nil
	})
	return bucket{client, name, prefix}, nil
}

// Put stores a file; see Target.
func (b bucket) Put(ctx context.Context, name string, file []byte) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := b.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &b.name, Key: b.key(name), Body: bytes.NewReader(file), ContentType: aws.String("application/gzip"),
	})
	return b.failure("write", name, err)
}

// Get reads a file; see Target.
func (b bucket) Get(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	res, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: b.key(name)})
	if _, ok := errors.AsType[*types.NoSuchKey](err); ok {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	if err != nil {
		return nil, b.failure("read", name, err)
	}
	defer func() { _ = res.Body.Close() }()
	file, err := io.ReadAll(io.LimitReader(res.Body, MaxBytes+1))
	return file, b.failure("read", name, err)
}

// List returns the names of all archives; see Target.
func (b bucket) List(ctx context.Context) (names []string, err error) {
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &b.prefix})
	for pages.HasMorePages() {
		page, err := b.page(ctx, pages)
		if err != nil {
			return nil, b.failure("list", b.prefix, err)
		}
		for _, o := range page.Contents {
			if name := strings.TrimPrefix(aws.ToString(o.Key), b.prefix); strings.HasSuffix(name, Suffix) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

func (b bucket) page(ctx context.Context, pages *s3.ListObjectsV2Paginator) (*s3.ListObjectsV2Output, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return pages.NextPage(ctx)
}

func (b bucket) String() string { return bucketScheme + b.name + "/" + b.prefix }

func (b bucket) key(name string) *string { return aws.String(b.prefix + name) }

// failure describes an error with the server's code, or the reason why there was no answer. Errors of
// the client library also have ids of requests, and the texts of credential providers.
func (b bucket) failure(what, name string, err error) error {
	if err == nil {
		return nil
	}
	about := fmt.Sprintf("archive %s: %s %s", b, what, name)
	if refused, ok := errors.AsType[smithy.APIError](err); ok {
		status := 0
		if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
			status = answer.HTTPStatusCode()
		}
		return fmt.Errorf("%s: the server answered %d %s: %s", about, status, refused.ErrorCode(), refused.ErrorMessage())
	}
	if send, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok {
		return fmt.Errorf("%s: no answer from the server: %w", about, send.Err)
	}
	if signing, ok := errors.AsType[*smithy.OperationError](err); ok && strings.Contains(err.Error(), "credentials") {
		return fmt.Errorf("%s: %s: no valid credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE", about, signing.Operation())
	}
	return fmt.Errorf("%s: %w", about, err)
}
