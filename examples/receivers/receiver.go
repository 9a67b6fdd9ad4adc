// Receives webhooks on port 9000. Needs Go 1.19 and the secret in WEBHOOK_SECRET.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const tolerance = 5 * time.Minute

var (
	secret = os.Getenv("WEBHOOK_SECRET")
	// Set to X-Service-Signature (X-<Platform>-Signature) to check that header instead.
	platformHeader = os.Getenv("PLATFORM_HEADER")
	// Ids of processed notifications. Use a unique column of your database instead, written in the
	// transaction that processes the event: the map is lost when the program ends.
	processed = map[string]bool{}
	lock      sync.Mutex
)

func sign(key []byte, message []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(message)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Keyed with the decoded secret. Covers the id and the time: an old request cannot be sent again.
func hasStandardSignature(header http.Header, body []byte) bool {
	id, sentAt := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseUint(sentAt, 10, 32)
	if err != nil || time.Since(time.Unix(int64(seconds), 0)).Abs() > tolerance {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		return false
	}
	expected := "v1," + sign(key, append([]byte(id+"."+sentAt+"."), body...))
	for _, signature := range strings.Fields(header.Get("webhook-signature")) {
		if hmac.Equal([]byte(signature), []byte(expected)) {
			return true
		}
	}
	return false
}

// Keyed with the text of the secret. Covers the body alone.
func hasPlatformSignature(header http.Header, body []byte) bool {
	return hmac.Equal([]byte(header.Get(platformHeader)), []byte(sign([]byte(secret), body)))
}

func receive(response http.ResponseWriter, request *http.Request) {
	// The bytes as received: JSON that was parsed and written again has another signature.
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, 1<<20))
	if err != nil {
		return
	}
	check := hasStandardSignature
	if platformHeader != "" {
		check = hasPlatformSignature
	}
	if !check(request.Header, body) {
		response.WriteHeader(http.StatusUnauthorized)
		return
	}
	lock.Lock()
	defer lock.Unlock()
	if id := request.Header.Get("webhook-id"); !processed[id] {
		fmt.Printf("genuine: %s\n", body) // process the event here
		processed[id] = true
	}
	response.WriteHeader(http.StatusNoContent)
}

func main() {
	if secret == "" {
		log.Fatal("set WEBHOOK_SECRET: with an empty key, a forged signature would be accepted")
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "9000"
	}
	http.HandleFunc("/", receive)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}
