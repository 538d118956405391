use std::time::Duration;

use clock::VirtualClock;
use http::{HeaderMap, Method};
use jiff::SignedDuration;

use super::*;

fn fake() -> Fake {
    let clock = VirtualClock::starting_at(VirtualClock::EPOCH);
    Fake::new(Plan::new("us-west-2", "demo"), Arc::new(clock))
}

fn form(body: &str) -> Call {
    let uri = "/".parse().expect("a URI");
    Call::parse(&Method::POST, &uri, &HeaderMap::new(), body.as_bytes()).expect("a call")
}

fn ec2(body: &str) -> Call {
    form(&format!("Version=2016-11-15&{body}"))
}

fn receive(seconds: u32) -> Call {
    form(&format!(
        "Version=2012-11-05&Action=ReceiveMessage&QueueUrl=https://sqs/1/demo&WaitTimeSeconds={seconds}"
    ))
}

fn actions(fake: &Fake) -> Vec<(String, u16, Option<String>)> {
    fake.with(|state, _| {
        let calls = state.record.calls();
        calls
            .map(|call| (call.action.clone(), call.status, call.error.clone()))
            .collect()
    })
}

#[tokio::test(start_paused = true)]
async fn a_receiver_waits_for_its_message_and_no_longer_than_it_said() {
    let fake = fake();
    let started = fake.now();
    let answer = fake.call(&receive(20)).await;
    assert!(!answer.body.contains("<Message>"), "{}", answer.body);
    assert_eq!(fake.now().duration_since(started), SignedDuration::from_secs(20));

    let waiting = tokio::spawn({
        let fake = fake.clone();
        async move { (fake.call(&receive(20)).await, fake.now()) }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    let sent = fake.now();
    fake.with(|state, now| state.region.send("hello".to_owned(), now));
    let (answer, received) = waiting.await.expect("an answer");
    assert!(answer.body.contains("<Body>hello</Body>"), "{}", answer.body);
    assert_eq!(received, sent);
    // A call is recorded once, however long it waited.
    assert_eq!(actions(&fake).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn ordered_faults_come_first_and_end_when_they_should() {
    let fake = fake();
    fake.with(|state, _| {
        state.faults.push(Fault {
            action: "Describe*".to_owned(),
            refusal: Refusal::new("InternalError", "").with_status(StatusCode::INTERNAL_SERVER_ERROR),
            times: Some(2),
        });
    });
    for _ in 0..3 {
        fake.call(&ec2("Action=DescribeSubnets")).await;
    }
    let seen: Vec<u16> = actions(&fake).into_iter().map(|(_, status, _)| status).collect();
    assert_eq!(seen, [500, 500, 200]);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_answered_as_before_and_means_one_request_only() {
    let fake = fake();
    let create = |name: &str| {
        ec2(&format!(
            "Action=CreateLaunchTemplate&ClientToken=t&LaunchTemplateName={name}&LaunchTemplateData.ImageId=ami-1"
        ))
    };
    let first = fake.call(&create("one")).await;
    let again = fake.call(&create("one")).await;
    assert_eq!((again.status, &again.body), (StatusCode::OK, &first.body));
    fake.call(&create("two")).await;
    let last = actions(&fake).pop().and_then(|(_, _, error)| error);
    assert_eq!(last.as_deref(), Some("IdempotentParameterMismatch"));
    assert_eq!(fake.with(|state, _| state.region.templates.len()), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_that_do_not_exist_are_refused_in_the_form_of_their_service() {
    let fake = fake();
    let answer = fake.call(&ec2("Action=CreateVpc")).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(
        answer
            .body
            .starts_with("<Response><Errors><Error><Code>InvalidAction</Code>"),
        "{}",
        answer.body
    );
}
