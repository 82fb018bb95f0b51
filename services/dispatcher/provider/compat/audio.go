package compat

import (
	"encoding/base64"
	"encoding/binary"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// sound holds the samples of a spoken answer: 16 bits, one channel, 24,000 per second.
type sound []byte

const (
	sampleRate  = 24_000
	sampleBytes = 2
)

// addAudio adds a piece of sound. The transcript is the answer's text.
func (a *answer) addAudio(d audioPiece) error {
	if d.Data != "" {
		samples, err := base64.StdEncoding.DecodeString(d.Data)
		if err != nil {
			return outbound.NewTransportError(err)
		}
		a.sound = append(a.sound, samples...)
		if err := a.addExtra(len(d.Data)); err != nil {
			return err
		}
	}
	return a.addText(d.Transcript)
}

// media returns the sound as a WAV file, because raw samples do not describe their format.
func (s sound) media() []provider.Media {
	if len(s) == 0 {
		return nil
	}
	const head = 36 // bytes between the length of the whole and the samples
	le := binary.LittleEndian
	w := append(make([]byte, 0, 8+head+len(s)), "RIFF"...)
	w = le.AppendUint32(w, uint32(head+len(s))) //nolint:gosec // an answer has 9 MiB at most
	w = append(w, "WAVEfmt "...)
	w = le.AppendUint32(w, 16) // bytes of the format that follows
	w = le.AppendUint16(w, 1)  // plain samples
	w = le.AppendUint16(w, 1)  // channel
	w = le.AppendUint32(w, sampleRate)
	w = le.AppendUint32(w, sampleRate*sampleBytes)
	w = le.AppendUint16(w, sampleBytes)
	w = le.AppendUint16(w, 8*sampleBytes)
	w = append(w, "data"...)
	w = le.AppendUint32(w, uint32(len(s))) //nolint:gosec // as above
	return []provider.Media{{MIME: "audio/wav", Data: append(w, s...)}}
}
