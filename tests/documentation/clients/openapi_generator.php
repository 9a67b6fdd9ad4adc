<?php
// A shop's requests with the PHP client that openapi-generator generates. Arguments: the folder of the
// client, the base URL, the API key and its secret. Debian's packages of Guzzle are installed.

[, $folder, $base, $key, $secret] = $argv;
require_once 'GuzzleHttp/autoload.php';
// Only for classes of the client: the client also asks for classes that do not exist.
spl_autoload_register(function (string $class) use ($folder): void {
    $file = $folder . '/lib/' . str_replace(['OpenAPI\\Client\\', '\\'], ['', '/'], $class) . '.php';
    if (is_file($file)) {
        require $file;
    }
});

use OpenAPI\Client\Api;
use OpenAPI\Client\Configuration;
use OpenAPI\Client\Model;

function check(bool $condition, string $what): void
{
    if (!$condition) {
        fwrite(STDERR, "$what\n");
        exit(1);
    }
}

$config = (new Configuration())->setHost($base);
$token = (new Api\AccessTokensApi(null, $config))->issueToken('client_credentials', $key, $secret, 'deliveries tasks');
$config->setAccessToken($token->getAccessToken());
$deliveries = new Api\DeliveriesApi(null, $config);

$address = new Model\DropoffDraftAddress(['street_address' => '48 Rue de Rivoli, 75004 Paris']);
$dropoff = new Model\DropoffDraft(['address' => $address, 'before' => 'tomorrow 13:00']);
$price = (new Api\RetailPricesApi(null, $config))->calculateRetailPrice(new Model\DeliveryDraft(['dropoff' => $dropoff]));
check($price->getAmount() === 499, 'price');

$draft = new Model\DeliveryDraft(['dropoff' => $dropoff, 'retail_price' => $price->getAtId()]);
$delivery = $deliveries->createDelivery($draft, substr($price->getAtId(), -32));
check($delivery->getPrice()->getAmount() === 499, 'create');

$task = (new Api\TasksApi(null, $config))->getTask($delivery->getDropoff()->getId());
check((string) $task->getStatus() === 'TODO', 'poll');

$listed = $deliveries->listDeliveries(1);
check($listed->getHydraMember()[0]->getId() === $delivery->getId(), 'list');

$webhooks = new Api\WebhooksApi(null, $config);
$webhook = $webhooks->createWebhook(new Model\WebhookDraft(['event' => 'delivery.completed', 'url' => 'http://127.0.0.1:9/']));
check(strlen(base64_decode($webhook->getSecret())) === 32, 'webhook');

$states = [Model\NotificationState::FAILED, Model\NotificationState::EXHAUSTED];
$notifications = (new Api\NotificationsApi(null, $config))->listNotifications($webhook->getId(), $states);
check($notifications->getHydraMember() === [], 'notifications');
