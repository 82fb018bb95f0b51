package rest

import (
	"errors"
	"fmt"
	"io"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/services/gateway/wirejson"
)

// codec gives grpc-gateway the JSON of wirejson. Bodies are read and checked
// before the translation; the gateway only gets handed what came out.
type codec struct{}

// decoded is a request body that has been read into a message.
type decoded struct{ msg proto.Message }

// Read is not used: the decoder takes the message.
func (*decoded) Read([]byte) (int, error) { return 0, io.EOF }

// Close does nothing; the real body is closed by the server.
func (*decoded) Close() error { return nil }

var errCodec = errors.New("rest: the translation was given something else than a message")

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

// NewDecoder hands over the body that was read before.
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
			proto.Merge(into, d.msg)
			return nil
		default:
			return fmt.Errorf("%w: %T", errCodec, v)
		}
	})
}

// NewEncoder is used by the gateway's own streaming, which this API does not use.
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

// ContentType of all answers but schemas.
func (codec) ContentType(any) string {
	return "application/json"
}
