// Package s3bucket stores objects in a bucket of an S3 server.
//
// The region, the endpoint and the credentials are those of the AWS_ variables and files.
package s3bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
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

// ErrNotFound means that a bucket has no object with a name, or that it ends before the range.
var ErrNotFound = errors.New("not in the bucket")

// Bucket is a bucket of an S3 server, or a part of it with a prefix. A PUT of S3 is durable when it is
// answered, and replaces an object as a whole. It is safe for concurrent use.
type Bucket struct {
	client *s3.Client
	// about describes the use of the bucket in errors.
	about        string
	name, prefix string
}

// requestTimeout limits a request with its retries.
const requestTimeout = 20 * time.Second

// defaultRegion is used if no setting names one. Servers other than AWS need none.
const defaultRegion = "us-east-1"

// Open returns the bucket of a URL, s3://BUCKET/PREFIX; about describes its use in errors. It calls no
// server.
func Open(ctx context.Context, target, about string) (*Bucket, error) {
	name, prefix, err := parse(target)
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
		// Self-hosted servers seldom have a host name for each bucket.
		o.UsePathStyle = o.BaseEndpoint != nil
	})
	return &Bucket{client: client, about: about, name: name, prefix: prefix}, nil
}

// Put stores an object. It is durable when Put returns.
func (b *Bucket) Put(ctx context.Context, name, contentType string, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := b.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &b.name, Key: b.key(name), Body: bytes.NewReader(content), ContentType: &contentType,
	})
	return b.failure("write", name, err)
}

// Get reads an object of at most limit bytes, and the beginning of a larger one. Errors: ErrNotFound.
func (b *Bucket) Get(ctx context.Context, name string, limit int64) ([]byte, error) {
	return b.get(ctx, name, nil, limit)
}

// Range reads some bytes of an object. Errors: ErrNotFound.
func (b *Bucket) Range(ctx context.Context, name string, at, size int64) ([]byte, error) {
	if size <= 0 {
		return nil, nil
	}
	part, err := b.get(ctx, name, aws.String(fmt.Sprintf("bytes=%d-%d", at, at+size-1)), size)
	if err == nil && int64(len(part)) < size {
		return nil, fmt.Errorf("%w: %s ends before byte %d", ErrNotFound, name, at+size)
	}
	return part, err
}

func (b *Bucket) get(ctx context.Context, name string, part *string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	res, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: b.key(name), Range: part})
	if _, ok := errors.AsType[*types.NoSuchKey](err); ok {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	if refused, ok := errors.AsType[smithy.APIError](err); ok && refused.ErrorCode() == "InvalidRange" {
		return nil, fmt.Errorf("%w: %s ends before the range", ErrNotFound, name)
	}
	if err != nil {
		return nil, b.failure("read", name, err)
	}
	defer func() { _ = res.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(res.Body, limit))
	return content, b.failure("read", name, err)
}

// Delete removes an object, if there is one.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: b.key(name)})
	if _, ok := errors.AsType[*types.NoSuchKey](err); ok {
		return nil
	}
	return b.failure("remove", name, err)
}

// List returns the names that end with a suffix, in order.
func (b *Bucket) List(ctx context.Context, suffix string) (names []string, err error) {
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &b.prefix})
	for pages.HasMorePages() {
		page, err := b.page(ctx, pages)
		if err != nil {
			return nil, b.failure("list", b.prefix, err)
		}
		for _, o := range page.Contents {
			if name := strings.TrimPrefix(aws.ToString(o.Key), b.prefix); strings.HasSuffix(name, suffix) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

func (b *Bucket) page(ctx context.Context, pages *s3.ListObjectsV2Paginator) (*s3.ListObjectsV2Output, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return pages.NextPage(ctx)
}

// String describes the bucket, without credentials.
func (b *Bucket) String() string { return Scheme + b.name + "/" + b.prefix }

func (b *Bucket) key(name string) *string { return aws.String(b.prefix + name) }

// failure describes an error with the server's code, or the reason why there was no answer. Errors of
// the client library also have ids of requests, and the texts of credential providers.
func (b *Bucket) failure(what, name string, err error) error {
	if err == nil {
		return nil
	}
	about := fmt.Sprintf("%s %s: %s %s", b.about, b, what, name)
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

// Scheme begins the URL of a bucket.
const Scheme = "s3://"

// Check reports a URL that Open refuses.
func Check(target string) error {
	_, _, err := parse(target)
	return err
}

// parse splits the URL of a bucket. An error does not repeat the URL, which may have a password.
func parse(target string) (bucket, prefix string, err error) {
	u, err := url.Parse(target)
	switch {
	case err != nil || u.Host == "" || !strings.HasPrefix(target, Scheme):
		return "", "", errors.New("want s3://BUCKET/PREFIX; the prefix is optional")
	case u.User != nil:
		return "", "", errors.New("s3://BUCKET/PREFIX has no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case u.Port() != "" || u.RawQuery != "" || u.Fragment != "":
		return "", "", errors.New("want s3://BUCKET/PREFIX, without port, query and fragment; AWS_ENDPOINT_URL_S3 names another server")
	}
	if prefix = strings.Trim(u.Path, "/"); prefix != "" {
		prefix += "/"
	}
	return u.Host, prefix, nil
}
