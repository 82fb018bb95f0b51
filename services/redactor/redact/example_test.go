package redact_test

import (
	"fmt"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor/redact"
)

func ExampleScrubber_Text() {
	s := redact.Compile([]redact.Secret{{ID: "openai", Value: "sk-live-0001"}})
	out, n := s.Text("calling with sk-live-0001, also as c2stbGl2ZS0wMDAx")
	fmt.Println(out, n)
	// Output: calling with [REDACTED:openai], also as [REDACTED:openai] 2
}

func ExampleScrubber_JSON() {
	s := redact.Compile([]redact.Secret{{ID: "openai", Value: "sk-live-0001"}})
	out, n, err := s.JSON([]byte(`{"n": 1.50, "sk-live-0001": ["x sk-live-0001"]}`), strictjson.Default)
	fmt.Println(string(out), n, err)
	// Output: {"n": 1.50, "[REDACTED:openai]": ["x [REDACTED:openai]"]} 2 <nil>
}

func ExampleStream() {
	s := redact.Compile([]redact.Secret{{ID: "openai", Value: "sk-live-0001"}}).Stream()
	for _, piece := range []string{"the key is sk-", "live-", "0001, sk"} {
		out, _ := s.Write(piece)
		fmt.Printf("%q\n", out)
	}
	rest, _ := s.Close()
	fmt.Printf("%q\n", rest)
	// Output:
	// "the key is "
	// ""
	// "[REDACTED:openai], "
	// "sk"
}
