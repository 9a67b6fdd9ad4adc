<?php
// Creates a delivery at the price that is calculated first. Needs PHP 8, and BASE, KEY and SECRET in the
// environment.

function send(string $path, ?string $body, array $headers): array
{
    $context = stream_context_create(['http' => [
        'method' => $body === null ? 'GET' : 'POST',
        'header' => $headers,
        'content' => $body ?? '',
        'ignore_errors' => true,
    ]]);
    $content = file_get_contents(getenv('BASE') . $path, false, $context);
    // `code` is for programs; `violations` lists what is wrong.
    if (!preg_match('~ 2\d\d~', $http_response_header[0])) {
        fwrite(STDERR, $content);
        exit(1);
    }
    return json_decode($content, true);
}

$form = http_build_query(['grant_type' => 'client_credentials', 'scope' => 'deliveries tasks']);
$granted = send('/oauth2/token', $form, [
    'Authorization: Basic ' . base64_encode(getenv('KEY') . ':' . getenv('SECRET')),
    'Content-Type: application/x-www-form-urlencoded',
]);

function call(string $path, ?array $body = null, array $headers = []): array
{
    global $granted;
    $common = ["Authorization: Bearer {$granted['access_token']}", 'Content-Type: application/ld+json'];
    return send($path, $body === null ? null : json_encode($body), [...$common, ...$headers]);
}

$slot = call('/api/time_slots/choices')['choices'][0]['value'];
$dropoff = ['address' => '48 Rue de Rivoli, 75004 Paris', 'timeSlot' => $slot];
$price = call('/api/retail_prices/calculate', ['dropoff' => $dropoff]);

// The same key after a timeout: the order is created once.
$key = bin2hex(random_bytes(16));
$order = ['dropoff' => $dropoff, 'retailPrice' => $price['@id']];
$delivery = call('/api/deliveries', $order, ["Idempotency-Key: $key"]);
echo $delivery['dropoff']['status'], "\n", $delivery['@id'], "\n";
