<?php
// Receives webhooks: WEBHOOK_SECRET=… php -S 127.0.0.1:9000 receiver.php
// Needs PHP 8 and the secret in WEBHOOK_SECRET.

const TOLERANCE = 5 * 60; // seconds

$secret = getenv('WEBHOOK_SECRET');
if (!$secret) {
    error_log('set WEBHOOK_SECRET: with an empty key, a forged signature would be accepted');
    http_response_code(500);
    exit;
}
// Set to X-Service-Signature (X-<Platform>-Signature) to check that header instead.
$platformHeader = getenv('PLATFORM_HEADER');
// Ids of processed notifications. Use a unique column of your database instead, written in the
// transaction that processes the event.
$processed = getenv('PROCESSED_DIR') ?: sys_get_temp_dir();

function header_value(string $name): string
{
    return $_SERVER['HTTP_' . strtr(strtoupper($name), '-', '_')] ?? '';
}

// Keyed with the decoded secret. Covers the id and the time: an old request cannot be sent again.
function has_standard_signature(string $secret, string $body): bool
{
    $id = header_value('webhook-id');
    $sentAt = header_value('webhook-timestamp');
    if (!ctype_digit($sentAt) || abs(time() - (int) $sentAt) > TOLERANCE) {
        return false;
    }
    $hash = hash_hmac('sha256', "$id.$sentAt.$body", base64_decode($secret), true);
    $expected = 'v1,' . base64_encode($hash);
    foreach (explode(' ', header_value('webhook-signature')) as $signature) {
        if (hash_equals($expected, $signature)) {
            return true;
        }
    }
    return false;
}

// Keyed with the text of the secret. Covers the body alone.
function has_platform_signature(string $header, string $secret, string $body): bool
{
    $expected = base64_encode(hash_hmac('sha256', $body, $secret, true));
    return hash_equals($expected, header_value($header));
}

// The bytes as received: JSON that was parsed and written again has another signature.
$body = file_get_contents('php://input');
$genuine = $platformHeader
    ? has_platform_signature($platformHeader, $secret, $body)
    : has_standard_signature($secret, $body);
if (!$genuine) {
    http_response_code(401);
    exit;
}
$mark = $processed . '/webhook-' . hash('sha256', header_value('webhook-id'));
if (!file_exists($mark)) {
    file_put_contents('php://stderr', "genuine: $body\n"); // process the event here
    touch($mark);
}
http_response_code(204);
