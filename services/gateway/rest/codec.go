package rest

import (
	"errors"
	"fmt"
	"io"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/services/gateway/wirejson"
)

// codec is the JSON codec for grpc-gateway. Bodies are decoded before the translation, so
// the gateway only receives messages.
type codec struct{}

// decoded is a request body that was decoded into a message.
type decoded struct{ msg proto.Message }

// Read is unused: the decoder takes the message.
func (*decoded) Read([]byte) (int, error) { return 0, io.EOF }

// Close does nothing: the server closes the real body.
func (*decoded) Close() error { return nil }

var errCodec = errors.New("rest: the translation received a value that is not a message")

// Marshal renders a response.
func (codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%w: %T", errCodec, v)
	}
	return wirejson.Append(nil, m)
}

// Unmarshal is not used by the translation of this API.
func (codec) Unmarshal([]byte, any) error { return errCodec }

// NewDecoder returns the message that was decoded before.
func (codec) NewDecoder(r io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(v any) error {
		d, ok := r.(*decoded)
		if !ok {
			return io.EOF // no body
		}
		switch into := v.(type) {
		case **openwopv1.JsonDocument:
			*into, ok = d.msg.(*openwopv1.JsonDocument)
			if !ok {
				return errCodec
			}
			return nil
		case proto.Message:
			to := into.ProtoReflect()
			d.msg.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
				to.Set(f, v) // not copied: nothing else uses the decoded message
				return true
			})
			return nil
		default:
			return fmt.Errorf("%w: %T", errCodec, v)
		}
	})
}

// NewEncoder is for the gateway's own streaming, which this API does not use.
func (c codec) NewEncoder(w io.Writer) runtime.Encoder {
	return runtime.EncoderFunc(func(v any) error {
		b, err := c.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	})
}

// ContentType is the media type of all answers except schemas.
func (codec) ContentType(any) string {
	return "application/json"
}
